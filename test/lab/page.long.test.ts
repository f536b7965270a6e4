// The page in a headless Chromium, from file://: every scenario plays to its end, and its digest is
// that of Node; keyboard, resizing, an empty console, and the size of the page.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { gzipSync } from 'node:zlib';
import { play } from '../../plugins/lab/run/play.js';
import { digestOf } from '../../plugins/lab/run/recording.js';
import { settingsOf } from '../../plugins/lab/run/scenario.js';
import { SCENARIOS } from '../../plugins/lab/scenarios/index.js';
import { leaveOut } from '../support/left-out.js';
import { hello } from '../support/printed-program.js';
import { Browser, chromiumCommand } from './browser.js';

const root = join(import.meta.dirname, '../../..');
const page = join(root, 'docs/lab/index.html');
const MOST_GZIPPED_BYTES = 1_500_000;
const SEEDS = 100;
/** Digests that one call of the page makes. */
const SEEDS_A_CALL = 10;

function run(...args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  assert.equal(status, 0, stderr);
  return stdout;
}

describe('the page of the lab', function () {
  this.timeout(600_000);
  let browser: Browser;

  before(async function () {
    const command = chromiumCommand();
    if (command === undefined) {
      leaveOut(this, 'no Chromium is installed', 'apt-get install chromium, then npm run test:all');
    }
    run(join(root, '.ci/lab.mjs'));
    browser = await Browser.open(command);
    await browser.resize(1280, 800);
  });
  after(() => browser?.close());
  afterEach(() => assert.deepEqual(browser.errors, []));

  const show = (hash: string): Promise<void> => browser.go(`${pathToFileURL(page).href}#${hash}`);
  const text = (id: string): Promise<string> =>
    browser.evaluate(`document.getElementById('${id}').textContent`);

  it('is small, and asks no network for anything', () => {
    const html = readFileSync(page);
    assert.ok(gzipSync(html).length <= MOST_GZIPPED_BYTES);
    assert.match(html.toString(), /default-src 'none'/);
  });

  for (const { name, title } of SCENARIOS) {
    it(`plays ${name} to its end, and what it claims holds`, async () => {
      await show(`scenario=${name}`);
      assert.equal(await text('title'), title);
      await browser.evaluate("document.getElementById('speed').value = 5");
      await browser.press(' ');
      await browser.until(
        "document.getElementById('play').getAttribute('aria-pressed') === 'false'",
      );
      const claims = await browser.evaluate<string[]>(
        "[...document.querySelectorAll('#claims li')].map((each) => each.className)",
      );
      assert.ok(claims.length >= 2 && claims.every((each) => each === 'holds'), String(claims));
      assert.equal(await text('problem'), '');
    });

    it(`has the recording of Node for ${name}, by ${SEEDS} seeds`, async () => {
      const scenario = SCENARIOS.find((each) => each.name === name)!;
      for (let first = 0; first < SEEDS; first += SEEDS_A_CALL) {
        const seeds = Array.from({ length: SEEDS_A_CALL }, (_, i) => first + i);
        const there = browser.evaluate<string[]>(
          `(async () => { const all = []; for (const seed of ${JSON.stringify(seeds)})
            all.push(await labDigest('${name}', seed)); return all; })()`,
        );
        const here: string[] = [];
        for (const seed of seeds) {
          here.push(digestOf(await play(scenario, { ...settingsOf(scenario), seed })));
        }
        assert.deepEqual(await there, here);
      }
    });
  }

  it('steps, goes back and selects by keyboard, and its address keeps the time', async () => {
    await show('scenario=hello&seed=5');
    const now = (): Promise<string> => text('now');
    const start = await now();
    for (let i = 0; i < 4; i++) await browser.press('ArrowRight');
    const later = await now();
    assert.notEqual(later, start);
    await browser.press('ArrowLeft');
    assert.notEqual(await now(), later);
    await browser.press('ArrowRight');
    assert.equal(await now(), later);
    assert.match(await browser.evaluate('location.hash'), /^#scenario=hello&seed=5&at=\d/);
    await browser.press('ArrowDown');
    assert.match(await text('fields'), /BTH.*DETH.*MAD.*REQ.*local qpn/s);
    assert.match(await text('announcement'), /REQ .* from client to server/);
    await browser.press('t');
    assert.match(await text('table'), /REQ.*REP.*RTU.*SEND ONLY.*ACK.*DREQ.*DREP/s);
    await browser.press('End');
    await browser.press('Home');
    assert.equal(await now(), start);
  });

  it('plays anew by a slider, and shows what has become of the claims', async () => {
    await show('scenario=hello');
    const digest = (): Promise<string> => browser.evaluate('document.body.dataset.digest');
    const before = await digest();
    await browser.evaluate(`(() => {
      const slider = document.getElementById('range-killAt');
      slider.value = 30;
      slider.dispatchEvent(new Event('change'));
    })()`);
    await browser.until(`document.body.dataset.digest !== '${before}'`);
    assert.match(await text('problem'), /does not happen any more/);
    assert.match(await browser.evaluate('location.hash'), /killAt=30/);
  });

  it('fits a narrow window, and draws anew when it is resized', async () => {
    await browser.resize(500, 800);
    await show('scenario=early-data');
    const overflow = 'document.documentElement.scrollWidth - innerWidth';
    assert.ok((await browser.evaluate<number>(overflow)) <= 0);
    const width = "Number(document.getElementById('ladder').getAttribute('width'))";
    const narrow = await browser.evaluate<number>(width);
    await browser.resize(1600, 900);
    await browser.until(`${width} > ${narrow}`);
  });

  it('has a name for each control', async () => {
    await show('scenario=hello');
    const nameless = await browser.evaluate<string[]>(`
      [...document.querySelectorAll('button, input, select, svg[role=img], [role=region]')]
        .filter((each) => !(each.getAttribute('aria-label') || each.textContent.trim() ||
          each.labels?.length > 0))
        .map((each) => each.outerHTML.slice(0, 100))`);
    assert.deepEqual(nameless, []);
  });

  it('shows a capture that dapl lab has written into it', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'dapl-lab-'));
    try {
      const [file, html] = [join(folder, 'real.pcapng'), join(folder, 'real.html')];
      const dapl = join(root, 'dist/plugins/cli/main.js');
      run(dapl, 'trace', '-o', file, process.execPath, hello());
      assert.equal(run(dapl, 'lab', file, '-o', html).trim(), html);
      await browser.go(pathToFileURL(html).href);
      assert.equal(await text('title'), 'real.pcapng');
      await browser.press('t');
      assert.match(await text('table'), /REQ.*REP.*RTU.*SEND ONLY/s);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
