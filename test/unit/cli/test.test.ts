// `dapl test`: the suite over devices of each provider, and a report that tells nothing private.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { hostname, networkInterfaces, release, tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ReportDocument, reportDocument } from '../../../plugins/cli/report/document.js';
import { maskText, maskWords, privateWords } from '../../../plugins/cli/report/mask.js';
import { subjectOf } from '../../../plugins/cli/report/subject.js';
import { testDevice, type TestOptions } from '../../../plugins/cli/report/test-device.js';
import { CM_LIBRARY, loadCmFake } from '../../fake-verbs/cm-host.js';
import { FAKE_LIBIBVERBS, fakeVerbs, Mode } from '../../fake-verbs/control.js';

const MAIN = join(import.meta.dirname, '../../../plugins/cli/main.js');
const BRIEF = { trips: 20, limitMs: 200, volumeBytes: 4 << 20 };
const SOME = 'Connecting: private data of';

async function run(options: Partial<TestOptions>): Promise<[ReportDocument, string[]]> {
  const lines: string[] = [];
  const print = (line: string): void => void lines.push(line);
  const common = { version: '1.2.3', only: SOME, figureOptions: BRIEF, print };
  const document = await testDevice({ provider: 'mock', ...common, ...options });
  return [document, lines];
}

/** Nothing of this machine, nor of the devices that were tested. */
function assertNothingPrivate(document: ReportDocument, ...words: readonly string[]): void {
  const text = JSON.stringify(document);
  const own = Object.values(networkInterfaces()).flatMap((addresses = []) =>
    addresses.flatMap(({ address, mac }) => [address, mac]),
  );
  for (const word of [hostname(), ...own, ...words]) {
    if (word.length > 3) assert.ok(!text.includes(word), `${word} in ${text}`);
  }
}

describe('dapl test', () => {
  it('runs what it is asked for over the mock, and leaves figures out', async () => {
    const [document, lines] = await run({});
    const { conformance, figures, figuresProblem, machine, dapl, format } = document;
    assert.deepEqual([format, dapl, machine['kernel']], ['dapl-report-1', '1.2.3', release()]);
    assert.ok(conformance.passed > 4, lines.join('\n'));
    assert.deepEqual(conformance.failed, []);
    assert.deepEqual([conformance.only, conformance.notApplicable], [SOME, {}]);
    assert.deepEqual([figures, figuresProblem], [[], 'its time is simulated']);
    assert.deepEqual(lines, ['Connecting']);
    assertNothingPrivate(document, '192.0.2.1');
  });

  it('looks at the provider of a package, or of a file', async () => {
    const provider = join(import.meta.dirname, '../../../providers/mock/index.js');
    const ends = { device: '192.0.2.1 fabric=tested', peer: '192.0.2.2 fabric=tested' };
    const [{ conformance, provider: named }] = await run({ provider, ...ends });
    assert.deepEqual([named, conformance.failed], ['index.js', []]);
    assert.ok(conformance.passed > 4);
    const [{ conformance: atomics }] = await run({ provider, ...ends, only: 'Atomic' });
    assert.ok(atomics.passed > 2, 'the device itself says what it can');
    await assert.rejects(run({ provider: 'acme' }), /acme needs --device and --peer/);
    await assert.rejects(run({ provider: 'acme-absent', ...ends }), {
      code: 'DAT_PROVIDER_NOT_FOUND',
    });
  });

  it('opens a device again as behaviours ask for', async () => {
    const [{ conformance }, lines] = await run({ only: 'Closing' });
    assert.deepEqual(conformance.failed, [], lines.join('\n'));
    assert.ok(conformance.passed > 10);
  });

  it('measures softroce, with reads', async () => {
    const [second, third] = [process.pid & 63, (process.pid >> 6) & 255];
    const [device, peer] = [1, 2].map((last) => `127.${64 + second}.${third}.${last}`);
    const options = { provider: 'softroce', only: 'Connecting: reject', device, peer } as const;
    const [{ figures, figuresProblem, conformance }, lines] = await run(options as TestOptions);
    assert.equal(figuresProblem, undefined);
    assert.deepEqual(conformance.failed, []);
    assert.deepEqual(
      figures.map(({ test, bytes }) => `${test} ${bytes}`),
      ['send_lat 64', 'send_lat 4096'].concat([
        'write_bw 65536',
        'read_bw 65536',
        'write_bw 1048576',
        'read_bw 1048576',
      ]),
    );
    for (const figure of figures) {
      const value = 'medianUs' in figure ? figure.medianUs : figure.mibPerSecond;
      assert.ok(value > 0, JSON.stringify(figure));
      if ('medianUs' in figure) assert.ok(figure.p99Us >= figure.medianUs);
    }
    assert.ok(lines.some((line) => /^write_bw 65536 B: [\d.]+ MiB\/s$/.test(line)));
  });

  it('reports a device of libibverbs: what it is, and none of its addresses', async () => {
    const [fake, cm] = [fakeVerbs(), loadCmFake()];
    fake.restore();
    fake.setMode(Mode.THREAD);
    cm.addAddress('198.51.100.1', 'fake0');
    cm.addAddress('198.51.100.2', 'fake1');
    const libraries = { verbs: FAKE_LIBIBVERBS, rdmacm: CM_LIBRARY };
    const devices = { device: 'fake0', peer: 'fake1' };
    const [document, lines] = await run({ provider: 'verbs', ...devices, libraries });
    assert.deepEqual(document.conformance.failed, [], lines.join('\n'));
    assert.ok(document.conformance.passed > 4);
    assert.deepEqual(
      document.devices.map(({ name }) => name),
      ['fake0', 'fake1'],
    );
    const [device] = document.devices;
    assert.ok(device!.firmware.length > 0 && device!.capabilities.includes('xrc'));
    assert.ok(device!.limits['maxSge']! > 0);
    assert.deepEqual([device!.ports[0]?.state, document.figures.length], ['ACTIVE', 6]);
    assert.ok(document.conformance.capabilities.includes('rdma-read'));
    assertNothingPrivate(document, '198.51.100', 'c633:64', 'nodeGuid');
  });

  it('says why a device cannot be had', async () => {
    await assert.rejects(run({ provider: 'verbs', device: 'mlx9_9' }), /mlx9_9|apt-get|no RDMA/);
  });

  it('says what fails, without names and addresses', async () => {
    const subject = await subjectOf({ provider: 'mock' });
    const words = [{ word: 'build7.example.com', mask: '<host>' }];
    const message =
      'build7.example.com: 10.1.2.3 (GID 0000:0000:0000:0000:0000:ffff:0a01:0203, ' +
      'fe80::5054:ff:fe4d:2%eth0, ::ffff:10.1.2.3) of 506b:4b03:00aa:bbcc, MAC 50:6b:4b:aa:bb:cc';
    const failure = { group: 'Closing', name: 'close', outcome: 'failed', message } as const;
    const results = [
      { ...failure, lacks: [], durationMs: 1 },
      { ...failure, outcome: 'not-applicable', lacks: ['cut'], durationMs: 0 } as const,
    ];
    const parts = { version: '1', subject, results, figures: [] };
    const { failed, notApplicable } = reportDocument(parts, words).conformance;
    const masked = '<host>: <address> (GID <address>, <address>, <address>) of <GUID>, MAC <MAC>';
    assert.deepEqual(failed, [{ behaviour: 'Closing: close', message: masked }]);
    assert.deepEqual(notApplicable, { cut: 1 });
  });

  it('masks names where they stand by themselves, and leaves versions and statuses alone', () => {
    const words = [
      { word: 'eth0', mask: '<interface>' },
      { word: 'lo', mask: '<interface>' },
      { word: 'ann', mask: '<user>' },
    ];
    assert.equal(
      maskWords('eth0: ann cannot, eth01 annex lo', words),
      '<interface>: <user> cannot, eth01 annex lo',
    );
    const plain = 'dto 1 REMOTE_ACCESS: expected 64, 28.39.1002 at offset 0x10, a: b';
    assert.equal(maskText(plain, words), plain);
    assert.equal(maskText(`in ${['', 'home', 'ann', 'x.js'].join('/')}:1`, []), 'in <path>');
    assert.ok(privateWords().some(({ word }) => word === hostname()));
  });

  it('writes a file that was not there, for its owner alone', () => {
    const folder = mkdtempSync(join(tmpdir(), 'dapl-test-'));
    const file = join(folder, 'report.json');
    const words = ['test', '-P', 'mock', '--only', SOME, '--report', file];
    try {
      const first = spawnSync(process.execPath, [MAIN, ...words], { encoding: 'utf8' });
      assert.equal(first.status, 0, first.stderr);
      assert.match(first.stdout, /passed, 0 failed\nno figures: .*\n.*read it before you send it/);
      assert.equal(statSync(file).mode & 0o777, 0o600);
      const document = JSON.parse(readFileSync(file, 'utf8')) as ReportDocument;
      assert.equal(document.provider, 'mock');
      const again = spawnSync(process.execPath, [MAIN, ...words], { encoding: 'utf8' });
      assert.equal(again.status, 1);
      assert.match(again.stderr, /EEXIST/);
      assert.equal(again.stdout, '', 'before anything has run');
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
