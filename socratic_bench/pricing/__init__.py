"""What calls cost: price tables, and arithmetic over tokens and prices; it calls nobody."""
