// The browser's side of every page: it replaces parts that the server sends, and sends back which
// button was pressed and what the form holds. All of the state is the server's and the store's.
"use strict";

function patchParts(parts) {
  for (const [id, html] of Object.entries(parts)) {
    const part = document.getElementById(id);
    if (!part || part.innerHTML === html) continue;
    const focused = part.contains(document.activeElement) ? document.activeElement.id : "";
    const atEnd = part.scrollTop + part.clientHeight >= part.scrollHeight - 4;
    const opened = [...part.querySelectorAll("details[open][id]")].map((details) => details.id);
    part.innerHTML = html;
    for (const name of opened) document.getElementById(name)?.setAttribute("open", "");
    if (focused) document.getElementById(focused)?.focus();
    part.querySelector("[data-focus]")?.focus();
    if (atEnd && part.classList.contains("log")) part.scrollTop = part.scrollHeight;
  }
}

function formValues() {
  const values = {};
  for (const field of document.querySelectorAll("[data-key]")) {
    const key = field.dataset.key;
    if (field.type === "checkbox" && field.dataset.many !== undefined) {
      values[key] ??= [];
      if (field.checked && !field.disabled) values[key].push(field.value);
    } else if (field.type === "checkbox") {
      values[key] = field.checked;
    } else {
      values[key] = field.value;
    }
  }
  return values;
}

function send(action, value) {
  emitEvent("action", { action, value, form: formValues() });
}

let typing;
document.addEventListener("input", (event) => {
  if (!event.target.matches("[data-key]")) return;
  clearTimeout(typing);
  typing = setTimeout(() => send("changed", event.target.dataset.key), 350);
});

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-action], [data-copy], [data-save]");
  if (!button) return;
  if (button.dataset.copy !== undefined) {
    const text = document.getElementById(button.dataset.copy).textContent;
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } else if (button.dataset.save !== undefined) {
    const link = document.createElement("a");
    const text = document.getElementById(button.dataset.save).textContent;
    link.href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
    link.download = button.dataset.name;
    link.click();
  } else {
    clearTimeout(typing);
    send(button.dataset.action, button.dataset.value ?? "");
  }
});

document.addEventListener("change", async (event) => {
  const field = event.target;
  if (!field.matches("input[type=file][data-upload]") || !field.files.length) return;
  const file = field.files[0];
  const answer = await fetch(`/uploads/${encodeURIComponent(file.name)}`, { method: "POST", body: file });
  send("uploaded", JSON.stringify({ field: field.dataset.upload, ok: answer.ok, text: await answer.text() }));
});

// On the label page a key is an answer; in a text field it is text.
document.addEventListener("keydown", (event) => {
  if (!document.querySelector("[data-keys]") || event.ctrlKey || event.metaKey || event.altKey) return;
  const isTyping = event.target.matches("input, textarea, select");
  if (isTyping && event.key === "Enter" && event.target.dataset.answer !== undefined) {
    event.preventDefault();
    send("answer", event.target.value);
  } else if (!isTyping && event.key.length === 1 && event.key !== " ") {
    send("key", event.key);
  }
});
