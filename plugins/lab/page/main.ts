/** The page: it plays a scenario, or shows a capture that `dapl lab` has put into it. */
import './platform.js';
import { leaveUnhandled } from '../../../core/spi/index.js';
import { flightRecordingOf, recordingOf } from '../run/capture.js';
import { summaryOf } from '../run/dissect.js';
import { play } from '../run/play.js';
import { digestOf, emptyRecording, FATES, type Recording } from '../run/recording.js';
import {
  parametersOf,
  RANGES,
  type Scenario,
  type Settings,
  settingsFrom,
  settingsOf,
} from '../run/scenario.js';
import { SCENARIOS } from '../scenarios/index.js';
import { byId, html, timeText } from './dom.js';
import { Ladder, lanesOf } from './ladder.js';
import { type Layout, layoutOf, timeAt, yOf } from './layout.js';
import { fieldsPanel, packetTable, queuesPanel, statesPanel } from './panels.js';
import { latenciesOf, type Plot, throughputOf } from './plots.js';

const PIXELS_PER_SECOND = 90;
const SPEEDS = [0.25, 0.5, 1, 2, 4, 8];
const DISCUSSIONS = '../discussions.md';

class Page {
  private scenario: Scenario = SCENARIOS[0]!;
  private settings: Settings = settingsOf(SCENARIOS[0]!);
  private recording: Recording = emptyRecording('', ['', '']);
  private layout: Layout = layoutOf(this.recording, false);
  private plots: readonly Plot[] = [];
  private y = 0;
  private selected = -1;
  private isPlaying = false;
  private lastFrame = 0;
  private showsCalls = false;
  private showsTable = false;
  /** Counts runs: of two at a time, the later one is shown. */
  private runs = 0;
  private readonly ladder = new Ladder(
    byId('scroller'),
    byId<HTMLElement>('ladder') as unknown as SVGSVGElement,
    (index) => this.select(index),
    (y) => this.moveTo(y),
  );

  async start(): Promise<void> {
    this.bind();
    const data = document.getElementById('capture');
    if (data) return this.showCapture(data);
    this.offerScenarios();
    this.offerRanges();
    addEventListener('hashchange', () => leaveUnhandled(this.readAddress()));
    await this.readAddress();
  }

  private showCapture(data: HTMLElement): void {
    const bytes = Uint8Array.from(atob(data.textContent.trim()), (each) => each.charCodeAt(0));
    const title = data.dataset['name'] ?? 'capture';
    document.body.classList.add('is-capture');
    byId('title').textContent = title;
    try {
      const isPcapng = bytes[0] === 0x0a && bytes[1] === 0x0d;
      this.recording = isPcapng
        ? recordingOf(bytes, title)
        : flightRecordingOf(new TextDecoder().decode(bytes), title);
    } catch (error) {
      byId('problem').textContent = (error as Error).message;
    }
    const { packets, nodes, endUs } = this.recording;
    byId('story').replaceChildren(
      html(
        'p',
        {},
        `${packets.length} packets of ${nodes.length} addresses in ${timeText(endUs)}.`,
      ),
    );
    this.shown(0);
  }

  private async readAddress(): Promise<void> {
    const parameters = new URLSearchParams(location.hash.slice(1));
    const name = parameters.get('scenario') ?? 'hello';
    this.scenario = SCENARIOS.find((each) => each.name === name) ?? SCENARIOS[0]!;
    this.settings = settingsFrom(parameters, settingsOf(this.scenario));
    const at = Number(parameters.get('at') ?? '0');
    await this.run(Number.isFinite(at) ? at : 0);
  }

  /** Plays anew and shows the time `atUs`. */
  private async run(atUs: number): Promise<void> {
    const number = ++this.runs;
    document.body.setAttribute('aria-busy', 'true');
    const recording = await play(this.scenario, this.settings);
    if (number !== this.runs) return;
    document.body.removeAttribute('aria-busy');
    this.recording = recording;
    this.selected = -1;
    this.tell();
    this.shown(atUs);
    this.writeAddress();
  }

  private shown(atUs: number): void {
    this.layout = layoutOf(this.recording, this.showsCalls);
    this.plots = [throughputOf(this.recording), latenciesOf(this.recording)];
    byId('plots').replaceChildren(
      ...this.plots.map(({ title, element }) =>
        html('figure', {}, html('figcaption', {}, title), element),
      ),
    );
    const { packets, endUs, nodes } = this.recording;
    byId('lanes').replaceChildren(...nodes.map((name) => html('span', {}, name)));
    this.placeNames();
    const label = `${packets.length} packets in ${timeText(endUs)}. The table has them as text.`;
    byId('ladder').setAttribute('aria-label', label);
    byId<HTMLInputElement>('time').max = String(Math.ceil(this.layout.height));
    byId('end').textContent = timeText(endUs);
    document.body.dataset['digest'] = digestOf(this.recording);
    this.y = atUs > 0 ? yOf(this.layout, atUs) : 0;
    this.render();
    this.ladder.follow(this.y);
  }

  /** The story, and what the scenario claims. */
  private tell(): void {
    const { scenario, settings, recording } = this;
    byId('title').textContent = scenario.title;
    byId<HTMLSelectElement>('scenario').value = scenario.name;
    byId<HTMLInputElement>('seed').value = String(settings.seed);
    for (const name of Object.keys(RANGES) as (keyof typeof RANGES)[]) {
      byId<HTMLInputElement>(`range-${name}`).value = String(settings[name]);
      byId(`value-${name}`).textContent = valueText(name, settings[name]);
    }
    const { discussion } = scenario;
    const link = discussion && { href: `${DISCUSSIONS}#${discussion.anchor}`, class: 'discussion' };
    byId('story').replaceChildren(
      ...scenario.text.map((sentence) => html('p', {}, sentence)),
      ...(link ? [html('a', link, discussion.title)] : []),
    );
    byId('problem').textContent = recording.problem;
  }

  // The cursor

  private moveTo(y: number): void {
    this.y = Math.min(Math.max(y, 0), this.layout.height);
    if (this.y >= this.layout.height) this.pause();
    this.render();
    this.ladder.follow(this.y);
  }

  /** To the next moment, or to the one before. */
  private step(by: 1 | -1): void {
    this.pause();
    const { moments } = this.layout;
    const next =
      by > 0
        ? moments.find(({ y }) => y > this.y + 0.5)
        : moments.findLast(({ y }) => y < this.y - 0.5);
    this.moveTo(next?.y ?? (by > 0 ? this.layout.height : 0));
    this.announce();
    this.writeAddress();
  }

  private toggle(): void {
    if (this.isPlaying) return this.pause();
    if (this.y >= this.layout.height) this.moveTo(0);
    this.isPlaying = true;
    this.lastFrame = performance.now();
    requestAnimationFrame((now) => this.frame(now));
    this.renderControls();
  }

  private pause(): void {
    if (!this.isPlaying) return;
    this.isPlaying = false;
    this.renderControls();
    this.writeAddress();
  }

  private frame(now: number): void {
    if (!this.isPlaying) return;
    const speed = SPEEDS[Number(byId<HTMLInputElement>('speed').value)] ?? 1;
    const seconds = Math.min(0.1, (now - this.lastFrame) / 1000);
    this.lastFrame = now;
    this.moveTo(this.y + seconds * PIXELS_PER_SECOND * speed);
    requestAnimationFrame((next) => this.frame(next));
  }

  /** Selects a packet; the cursor goes to where it is sent, if that is in the future. */
  private select(index: number): void {
    if (index < 0 || index >= this.recording.packets.length) return;
    this.selected = index;
    const { sentY } = this.layout.packets[index]!;
    if (sentY > this.y) this.y = sentY + 1;
    byId('tab-fields').click();
    this.render();
    this.ladder.follow(sentY);
    this.announce();
  }

  /** Tells a screen reader what has just happened. */
  private announce(): void {
    const nowUs = this.nowUs;
    const packet =
      this.recording.packets[this.selected] ??
      this.recording.packets.findLast(({ sentUs }) => sentUs <= nowUs);
    if (!packet) return;
    const { name, detail } = summaryOf(packet.bytes);
    const [from, to] = [this.recording.nodes[packet.from], this.recording.nodes[packet.to]];
    byId('announcement').textContent =
      `${timeText(nowUs)}: ${name} ${detail} from ${from} to ${to}, ${FATES[packet.fate]}`;
  }

  private get nowUs(): number {
    return timeAt(this.layout, this.y);
  }

  // Drawing

  /** Puts the names of the nodes over their lifelines. */
  private placeNames(): void {
    const { children } = byId('lanes');
    const lanes = lanesOf(children.length, byId('scroller').clientWidth);
    for (const [i, x] of lanes.entries()) (children[i] as HTMLElement).style.left = `${x}px`;
  }

  private render(): void {
    const { recording, layout, y, selected, nowUs } = this;
    byId('scroller').hidden = this.showsTable;
    byId('table').hidden = !this.showsTable;
    if (!this.showsTable) this.ladder.show({ recording, layout, y, selected });
    byId<HTMLInputElement>('time').value = String(y);
    byId<HTMLInputElement>('time').setAttribute('aria-valuetext', timeText(nowUs));
    byId('now').textContent = timeText(nowUs);
    byId('fields').replaceChildren(...fieldsPanel(recording, selected));
    byId('states').replaceChildren(...statesPanel(recording, nowUs));
    byId('queues').replaceChildren(...queuesPanel(recording, nowUs));
    for (const plot of this.plots) plot.move(nowUs);
    byId('claims').replaceChildren(
      ...recording.claims.map(({ text, holds, timeUs }) => {
        const state = timeUs > nowUs && y < layout.height ? 'later' : holds ? 'holds' : 'fails';
        const sign = { later: '○', holds: '✓', fails: '✗' }[state];
        return html(
          'li',
          { class: state },
          html('span', { 'aria-hidden': true }, sign),
          ` ${text}`,
        );
      }),
    );
    this.renderControls();
  }

  private renderControls(): void {
    const play = byId('play');
    play.dataset['icon'] = this.isPlaying ? 'pause' : 'play';
    play.setAttribute('aria-label', this.isPlaying ? 'Pause' : 'Play');
    play.setAttribute('aria-pressed', String(this.isPlaying));
  }

  private renderTable(): void {
    byId('view').textContent = this.showsTable ? 'Show the ladder' : 'Show as table';
    const table = (): Node => packetTable(this.recording, this.selected, (i) => this.select(i));
    byId('table').replaceChildren(...(this.showsTable ? [table()] : []));
    this.render();
  }

  // Controls

  private offerScenarios(): void {
    const list = byId<HTMLSelectElement>('scenario');
    list.append(...SCENARIOS.map(({ name, title }) => html('option', { value: name }, title)));
    list.addEventListener('change', () => this.change(list.value, undefined));
    const seed = byId<HTMLInputElement>('seed');
    seed.addEventListener('change', () => this.set({ seed: Number(seed.value) || 0 }));
    byId('dice').addEventListener('click', () =>
      this.set({ seed: Math.floor(Math.random() * 1_000_000) }),
    );
    byId('reset').addEventListener('click', () => this.change(this.scenario.name, undefined));
  }

  private offerRanges(): void {
    for (const name of Object.keys(RANGES) as (keyof typeof RANGES)[]) {
      const { label, most, step } = RANGES[name];
      const input = html('input', { type: 'range', id: `range-${name}`, min: 0, max: most, step });
      const value = html('output', { id: `value-${name}`, for: `range-${name}` });
      input.addEventListener('input', () => {
        value.textContent = valueText(name, Number(input.value));
      });
      input.addEventListener('change', () => this.set({ [name]: Number(input.value) }));
      byId('ranges').append(html('label', { for: `range-${name}` }, label), value, input);
    }
  }

  private set(change: Partial<Settings>): void {
    this.change(this.scenario.name, { ...this.settings, ...change });
  }

  /** @param settings undefined for the scenario's own */
  private change(name: string, settings: Settings | undefined): void {
    const scenario = SCENARIOS.find((each) => each.name === name) ?? SCENARIOS[0]!;
    const isSame = scenario === this.scenario && settings !== undefined;
    const atUs = isSame ? this.nowUs : 0;
    this.scenario = scenario;
    this.settings = settings ?? settingsOf(scenario);
    this.pause();
    leaveUnhandled(this.run(atUs));
  }

  /** The address says what is shown, so that it can be shared. */
  private writeAddress(): void {
    if (document.body.classList.contains('is-capture')) return;
    const parameters = new URLSearchParams({ scenario: this.scenario.name });
    for (const [name, value] of parametersOf(this.settings, settingsOf(this.scenario))) {
      parameters.set(name, value);
    }
    parameters.set('seed', String(this.settings.seed));
    if (this.nowUs > 0) parameters.set('at', this.nowUs.toFixed(1));
    history.replaceState(null, '', `#${parameters.toString()}`);
  }

  private bind(): void {
    const on = (id: string, run: () => void): void => byId(id).addEventListener('click', run);
    on('play', () => this.toggle());
    on('back', () => this.step(-1));
    on('forward', () => this.step(1));
    on('first', () => this.jump(0));
    on('last', () => this.jump(this.layout.height));
    on('view', () => this.switchView());
    on('theme', switchTheme);
    const time = byId<HTMLInputElement>('time');
    time.addEventListener('input', () => {
      this.pause();
      this.moveTo(Number(time.value));
    });
    time.addEventListener('change', () => this.writeAddress());
    const calls = byId<HTMLInputElement>('calls');
    calls.addEventListener('change', () => {
      this.showsCalls = calls.checked;
      this.shown(this.nowUs);
    });
    for (const tab of document.querySelectorAll<HTMLElement>('[role=tab]')) {
      tab.addEventListener('click', () => chooseTab(tab));
    }
    addEventListener('resize', () => {
      this.ladder.draw();
      this.placeNames();
    });
    addEventListener('keydown', (event) => this.onKey(event));
  }

  private jump(y: number): void {
    this.pause();
    this.moveTo(y);
    this.writeAddress();
  }

  private switchView(): void {
    this.showsTable = !this.showsTable;
    this.renderTable();
  }

  private onKey(event: KeyboardEvent): void {
    const target = event.target as HTMLElement;
    const isTyping = target instanceof HTMLInputElement || target instanceof HTMLSelectElement;
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    const keys: Readonly<Record<string, () => void>> = {
      ' ': () => this.toggle(),
      ArrowRight: () => this.step(1),
      ArrowLeft: () => this.step(-1),
      ArrowDown: () => this.select(this.selected + 1),
      ArrowUp: () => this.select(this.selected - 1),
      Home: () => this.jump(0),
      End: () => this.jump(this.layout.height),
      t: () => this.switchView(),
      d: switchTheme,
    };
    const tabs = document.querySelectorAll<HTMLElement>('[role=tab]');
    const run = keys[event.key] ?? (() => tabs[Number(event.key) - 1]?.click());
    const isOfButton = event.key === ' ' && target instanceof HTMLButtonElement;
    if (isOfButton || (!(event.key in keys) && !/^[1-9]$/.test(event.key))) return;
    event.preventDefault();
    run();
  }
}

function valueText(name: keyof typeof RANGES, value: number): string {
  const { unit } = RANGES[name];
  return value === 0 && name.endsWith('At') ? 'never' : `${value} ${unit}`;
}

function chooseTab(chosen: HTMLElement): void {
  for (const tab of document.querySelectorAll<HTMLElement>('[role=tab]')) {
    tab.setAttribute('aria-selected', String(tab === chosen));
    byId(tab.getAttribute('aria-controls')!).hidden = tab !== chosen;
  }
}

function switchTheme(): void {
  const { dataset } = document.documentElement;
  const isDark = dataset['theme']
    ? dataset['theme'] === 'dark'
    : matchMedia('(prefers-color-scheme: dark)').matches;
  dataset['theme'] = isDark ? 'light' : 'dark';
}

/** For tests: plays a scenario and returns the digest of it. */
Object.assign(globalThis, {
  labDigest: async (name: string, seed: number) => {
    const scenario = SCENARIOS.find((each) => each.name === name)!;
    return digestOf(await play(scenario, { ...settingsOf(scenario), seed }));
  },
});

await new Page().start();
document.body.dataset['ready'] = 'true';
