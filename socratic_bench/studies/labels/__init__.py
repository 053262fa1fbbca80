"""What people say of replies: files of labels, read whole or refused with every mistake."""
