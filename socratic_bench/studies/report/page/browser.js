"use strict";
(() => {
  const FIRST = 50, LONG = 20000;
  const by = (id) => document.getElementById(id);
  const index = JSON.parse(by("index").textContent);
  const blocks = document.querySelectorAll("script.block");
  const opened = new Map();
  const form = by("find"), list = by("runs"), panes = by("panes"), more = by("more"), found = by("found");
  let shown = FIRST, asked = 0;

  // Text is only ever set as text: no markup is made of it.
  function element(name, text, className) {
    const made = document.createElement(name);
    if (text !== undefined && text !== null) made.textContent = text;
    if (className) made.className = className;
    return made;
  }

  function open(number) {
    if (!opened.has(number)) opened.set(number, read(blocks[number]));
    return opened.get(number);
  }

  async function read(block) {
    const packed = Uint8Array.from(atob(block.textContent), (one) => one.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    return JSON.parse(await new Response(stream).text());
  }

  async function turnsOf(run) {
    return run.block === null ? null : (await open(run.block))[run.place];
  }

  const runs = index.runs.map(([id, model, sample, repeat, turns, score, events, lapse, block, place]) => ({
    id, model: index.models[model], sample: index.samples[sample], repeat, turns, score,
    events: events.map((one) => index.events[one]), lapse, block, place,
  }));
  const named = new Map(runs.map((run) => [run.id, run]));

  for (const [name, values] of [["model", index.models], ["sample", index.samples], ["event", index.events]]) {
    for (const value of values) form.elements[name].append(new Option(spaced(value), value));
    if (!values.length) form.elements[name].parentElement.hidden = true;
  }

  function spaced(name) {
    return name.replaceAll("_", " ");
  }

  function figure(value) {
    return value === null || value === undefined ? "–" : String(Math.round(value * 100) / 100);
  }

  async function matching() {
    const { model, sample, event, words, order } = Object.fromEntries(new FormData(form));
    let kept = runs.filter((run) =>
      (!model || run.model === model) && (!sample || run.sample === sample) && (!event || run.events.includes(event)));
    const sought = words.trim().toLowerCase();
    if (sought) {
      const texts = await Promise.all(kept.map(turnsOf));
      kept = kept.filter((_, n) => texts[n] && texts[n].some((turn) =>
        (turn.r + "\n" + (turn.s || "")).toLowerCase().includes(sought)));
    }
    if (order === "best") kept = [...kept].reverse();
    if (order === "run") kept = [...kept].sort((one, other) => one.id < other.id ? -1 : 1);
    return kept;
  }

  async function show() {
    const turn = ++asked;
    if (form.elements.words.value) found.textContent = "Searching …";
    const kept = await matching();
    if (turn !== asked) return;
    list.replaceChildren(...kept.slice(0, shown).map(entry));
    found.textContent = `${kept.length} of ${runs.length} runs`;
    more.hidden = kept.length <= shown;
  }

  function entry(run) {
    const made = element("li");
    const link = element("a", `${run.model}, ${run.sample}`);
    link.href = "#" + new URLSearchParams({ run: run.id, ...(run.lapse === null ? {} : { turn: run.lapse }) });
    const what = element("span", null, "what");
    what.append(link, run.repeat === null ? "" : ` (repeat ${run.repeat})`);
    made.append(what, element("span", `${index.score} ${figure(run.score)}`), element("span", `of ${run.turns} turns`));
    if (run.lapse !== null) made.append(element("span", `falls short at turn ${run.lapse}`));
    if (run.events.length) made.append(element("span", run.events.map(spaced).join(", "), "bad"));
    return made;
  }

  function marked(text, spans) {
    const made = document.createDocumentFragment();
    let at = 0;
    for (const [start, end, title] of [...spans].sort((one, other) => one[0] - other[0])) {
      const from = Math.max(start, at);
      if (from >= end || end > text.length) continue;
      const mark = element("mark", text.slice(from, end));
      mark.title = title;
      made.append(text.slice(at, from), mark);
      at = end;
    }
    made.append(text.slice(at));
    return made;
  }

  function words(text, spans, className) {
    const made = element("div", null, className ? "words " + className : "words");
    made.dir = "auto";
    if (text.length <= LONG) {
      made.append(marked(text, spans));
      return [made];
    }
    made.append(marked(text.slice(0, LONG), spans.filter((span) => span[1] <= LONG)), " …");
    const whole = element("button", `Show all ${text.length.toLocaleString("en")} characters`);
    whole.type = "button";
    whole.onclick = () => {
      made.replaceChildren(marked(text, spans));
      whole.remove();
    };
    return [made, whole];
  }

  function evidence(turn) {
    const spans = new Map();
    for (const verdict of turn.v) {
      for (const [name, start, end] of verdict.e) {
        const key = start + " " + end;
        spans.set(key, [start, end, spans.has(key) ? `${spans.get(key)[2]}, ${spaced(name)}` : spaced(name)]);
      }
    }
    return [...spans.values()];
  }

  function verdictsOf(turn) {
    return turn.v.map((verdict) => {
      const box = element("div", null, "verdicts");
      box.append(element("strong", `${verdict.j}: ${verdict.u ? "no score, " + spaced(verdict.u) : figure(verdict.p)}`));
      const pairs = element("dl");
      for (const [name, score] of Object.entries(verdict.d)) {
        const why = verdict.w[name];
        pairs.append(element("dt", `${spaced(name)} ${figure(score)}`), element("dd", why || ""));
      }
      for (const [name, quote] of verdict.s) {
        pairs.append(element("dt", spaced(name), "bad"), element("dd", quote ? `“${quote}”` : ""));
      }
      if (pairs.children.length) box.append(pairs);
      return box;
    });
  }

  function turnOf(turn, run, wanted) {
    const box = element("section", null, "turn");
    const head = element("header");
    head.append(element("strong", `Turn ${turn.n}`));
    const link = element("a", "link");
    link.href = "#" + new URLSearchParams({ run: run.id, turn: turn.n });
    link.setAttribute("aria-label", `Link to turn ${turn.n}`);
    head.append(element("span", turn.x ? "replayed" : turn.u ? "no score, " + spaced(turn.u) : `score ${figure(turn.p)}`), link);
    const seen = new Set(turn.v.flatMap((verdict) => verdict.s.map((one) => spaced(one[0]))));
    if (seen.size) head.append(element("span", [...seen].join(", "), "bad"));
    if (turn.k) head.append(element("span", turn.k, "bad"));
    if (turn.o !== "answered") head.append(element("span", turn.o, "bad"));
    box.append(head);
    if (turn.s !== null) {
      const said = words(turn.s, [], "said");
      said[0].prepend(element("span", index.speakers[0], "who"));
      box.append(...said);
    }
    const reply = words(turn.r, evidence(turn), "");
    reply[0].prepend(element("span", index.speakers[1], "who"));
    box.append(...reply, ...verdictsOf(turn));
    if (turn.h) {
      const details = element("details");
      details.append(element("summary", "Text features and metadata"), element("p", turn.h, "verdicts"));
      box.append(details);
    }
    if (String(turn.n) === wanted) {
      box.classList.add("target");
      box.tabIndex = -1;
    }
    return box;
  }

  async function pane(run, turn, other) {
    const made = element("article");
    const head = element("header");
    const title = element("h3", `${run.model}, ${run.sample}` + (run.repeat === null ? "" : ` (repeat ${run.repeat})`));
    made.append(head);
    head.append(title, element("p", `${run.id}, ${index.score} ${figure(run.score)}`, "kicker"));
    const choose = element("label", "Compare with another run: ");
    const select = element("select");
    select.append(new Option("none", ""));
    for (const one of runs) {
      if (one !== run && one.sample === run.sample && one.block !== null) {
        select.append(new Option(one.model + (one.repeat === null ? "" : ` (repeat ${one.repeat})`), one.id));
      }
    }
    if (!other.is) {
      select.value = other.id || "";
      select.onchange = () => {
        location.hash = new URLSearchParams({ run: run.id, ...(select.value ? { beside: select.value } : {}) });
      };
      choose.className = "opens sans";
      choose.append(select);
      if (select.options.length > 1) head.append(choose);
    }
    const turns = await turnsOf(run);
    if (turns === null) made.append(element("p", "This transcript was left out to keep the file small."));
    else made.append(...turns.map((one) => turnOf(one, run, turn)));
    return made;
  }

  async function follow() {
    const hash = location.hash, wanted = new URLSearchParams(hash.slice(1));
    const run = named.get(wanted.get("run"));
    if (!run) return;
    const beside = named.get(wanted.get("beside"));
    const made = [await pane(run, wanted.get("turn"), { id: beside && beside.id })];
    if (beside) made.push(await pane(beside, wanted.get("turn"), { is: true }));
    // Another one may have been asked for while this one was unpacked.
    if (hash !== location.hash) return;
    panes.replaceChildren(...made);
    panes.classList.toggle("two", made.length > 1);
    panes.style.setProperty("--rows", Math.max(...made.map((one) => one.children.length)));
    const target = panes.querySelector(".target") || panes.querySelector("h3");
    target.tabIndex = -1;
    target.focus({ preventScroll: true });
    target.scrollIntoView();
  }

  form.oninput = () => { shown = FIRST; show(); };
  form.onsubmit = (event) => event.preventDefault();
  more.onclick = () => { shown += 10 * FIRST; show(); };
  window.onhashchange = follow;
  show();
  follow();
})();
