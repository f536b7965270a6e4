import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { mergeCaptures } from 'dapl/plugins/pcap';
import { hello } from '../../support/printed-program.js';

const main = fileURLToPath(import.meta.resolve('../../../plugins/cli/main.js'));
const HELLO = hello();
/** Programs are looked for where every user may look. */
const ENV = { ...process.env, PATH: '/usr/bin:/bin' };

interface Run {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Times of the packets of a pcapng file, in its order, and the number of its interfaces. */
function read(file: string): { times: number[]; interfaces: number; used: Set<number> } {
  const bytes = readFileSync(file);
  const times: number[] = [];
  const used = new Set<number>();
  let interfaces = 0;
  let sections = 0;
  for (let at = 0; at < bytes.length; at += bytes.readUInt32LE(at + 4)) {
    const type = bytes.readUInt32LE(at);
    if (type === 0x0a0d0d0a) sections++;
    if (type === 1) interfaces++;
    if (type !== 6) continue;
    used.add(bytes.readUInt32LE(at + 8));
    times.push(bytes.readUInt32LE(at + 12) * 2 ** 32 + bytes.readUInt32LE(at + 16));
  }
  assert.equal(sections, 1);
  return { times, interfaces, used };
}

describe('dapl trace', () => {
  let folder: string;
  let out: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'dapl-trace-'));
    out = join(folder, 'out.pcapng');
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const dapl = (...args: string[]): Run =>
    spawnSync(process.execPath, [main, ...args], { encoding: 'utf8', cwd: folder, env: ENV });

  it('captures all processes of a program into one file, in the order of time', () => {
    // Each of the three opens two devices; the addresses are those of the sample, so one by one.
    const thrice = `
      const { spawnSync } = require('node:child_process');
      for (let i = 0; i < 3; i++) {
        const { status } = spawnSync(process.execPath, [${JSON.stringify(HELLO)}]);
        if (status !== 0) process.exit(status);
      }`;
    const { status, stderr } = dapl('trace', '-o', out, process.execPath, '--eval', thrice);
    assert.equal(status, 0, stderr);
    const { times, interfaces, used } = read(out);
    assert.equal(interfaces, 6);
    assert.equal(used.size, 6);
    assert.ok(times.length >= 3 * 8, String(times.length));
    assert.deepEqual(
      times,
      [...times].sort((a, b) => a - b),
    );
    const said = `dapl trace: ${out}: ${String(times.length)} packets of 6 devices\n`;
    assert.ok(stderr.endsWith(said), stderr);
    assert.deepEqual(readdirSync(folder), ['out.pcapng']);
  });

  it('ends as the program does, and says when there was nothing to capture', () => {
    const echo = "console.log(process.argv.slice(1).join(' '))";
    const { status, stdout, stderr } = dapl(
      'trace',
      process.execPath,
      '--eval',
      echo,
      '--',
      '-o',
      'x',
    );
    assert.match(stderr, /dapl\.pcapng: empty, the program opened no device/);
    assert.equal(status, 0);
    assert.equal(stdout, '-o x\n'); // the options behind the program are the program's
    assert.equal(dapl('trace', process.execPath, '--eval', 'process.exit(7)').status, 7);
    const killed = dapl(
      'trace',
      process.execPath,
      '--eval',
      "process.kill(process.pid, 'SIGKILL')",
    );
    assert.equal(killed.status, 128 + 9);
  });

  it('explains what it cannot do', () => {
    const missing = dapl('trace', 'no-such-program-anywhere');
    assert.equal(missing.status, 127);
    assert.match(missing.stderr, /no-such-program-anywhere: no such program/);
    const nowhere = dapl('trace', '-o', '/no/such/folder/x.pcapng', 'true');
    assert.equal(nowhere.status, 1);
    assert.match(nowhere.stderr, /^dapl trace: .*\/no\/such\/folder/);
    assert.match(dapl('trace').stderr, /missing required argument 'command'/);
  });

  it('keeps what a writer that was killed had finished', () => {
    assert.equal(dapl('trace', '-o', out, process.execPath, HELLO).status, 0);
    const whole = read(out).times.length;
    const cut = join(folder, 'cut.pcapng');
    appendFileSync(cut, readFileSync(out).subarray(0, -30));
    const merged = join(folder, 'merged.pcapng');
    const { packets, interfaces } = mergeCaptures([cut, out], merged);
    assert.deepEqual([packets, interfaces], [2 * whole - 1, 4]);
    assert.equal(read(merged).times.length, packets);
  });
});
