import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { readdirSync, readFileSync } from 'node:fs';
import { inBlock0, loopback, networkOf, takeBlock, testPort } from './loopback.js';

const MODULE = fileURLToPath(new URL('loopback.js', import.meta.url));
const PRINT = `
  import { loopback, testPort } from ${JSON.stringify(MODULE)};
  console.log(loopback(3, 4), testPort(5));`;

/** What another process says, as that user, told of our block or not. */
function elsewhere(env: NodeJS.ProcessEnv, uid?: number): string {
  const args = ['--input-type=module', '-e', PRINT];
  const user = uid === undefined ? {} : { uid, gid: uid };
  const options = { encoding: 'utf8', env, cwd: '/', ...user } as const;
  const { stdout, stderr } = spawnSync(process.execPath, args, options);
  assert.equal(stderr, '');
  return stdout.trim();
}

function others(): NodeJS.ProcessEnv {
  const env = { ...process.env };
  delete env['DAPL_TEST_BLOCK'];
  // Another user may not write where the coverage of this one's programs is noted. A variable that
  // is left out would be handed on.
  env['NODE_V8_COVERAGE'] = '';
  return env;
}

const ours = (): string => `${loopback(3, 4)} ${testPort(5)}`;

describe('loopback addresses of a run', () => {
  it('are those of a block of its own, and so are ports', () => {
    const [, block] = /^127\.(\d+)\.3\.4$/.exec(loopback(3, 4)) ?? [];
    assert.ok(Number(block) >= 1 && Number(block) <= 254, String(block));
    assert.equal(networkOf(3), `127.${block}.3`);
    assert.equal(testPort(47), testPort(0) + 47);
    assert.ok(testPort(0) > 19_999 && testPort(47) < 32_768, String(testPort(0)));
    assert.equal(inBlock0(`no answer from ${loopback(3, 4)}.`), 'no answer from 127.0.3.4.');
  });

  it('are of no other run, not even of another user', () => {
    const found = [elsewhere(others())];
    if (process.geteuid?.() === 0) found.push(elsewhere(others(), 54_321));
    for (const other of found) {
      assert.match(other, /^127\.\d+\.3\.4 \d+$/);
      const [address, port] = other.split(' ');
      const [ownAddress, ownPort] = ours().split(' ');
      assert.notEqual(address, ownAddress);
      assert.notEqual(port, ownPort);
    }
  });

  it('are given away again when a run has ended', () => {
    assert.notEqual(takeBlock(100), takeBlock(100));
    const script = `
      import { takeBlock } from ${JSON.stringify(MODULE)};
      console.log(takeBlock(${process.pid + 100}));
      process.kill(process.pid, 'SIGKILL');`;
    const run = (): string =>
      spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' })
        .stdout;
    assert.match(run(), /^\d+\n$/);
    // Another run may take it in between, though hardly each time.
    assert.ok(Array.from({ length: 5 }, run).some((block, i, all) => block === all[i - 1]));
  });

  it('are the same for the programs and threads that it starts', async () => {
    assert.equal(elsewhere(process.env), ours());
    const source = `
      import(${JSON.stringify(MODULE)}).then(({ loopback, testPort }) =>
        require('node:worker_threads').parentPort.postMessage(
          loopback(3, 4) + ' ' + testPort(5)));`;
    const worker = new Worker(source, { eval: true });
    const said = await new Promise((resolve) => worker.once('message', resolve));
    await worker.terminate();
    assert.equal(said, ours());
  });

  it('have parts from 0 to 255', () => {
    for (const [network, host] of [
      [256, 1],
      [1, 256],
      [-1, 1],
      [1, 1.5],
    ] as const) {
      assert.throws(() => loopback(network, host), RangeError);
    }
    for (const index of [-1, 48, 0.5]) assert.throws(() => testPort(index), RangeError);
  });

  it('are all that tests bind: no other one is in them', () => {
    const root = join(import.meta.dirname, '../../../test');
    // Where they are text, or addresses of machines that are made up.
    const TEXT = [
      ...['unit/verbs/', 'unit/cli/info', 'unit/providers/options', 'unit/dat/mad-agents'],
      ...['bundle', 'unit/dat/words', 'unit/node/local-address', 'unit/softroce/bind-error'],
      ...['unit/softroce/local-addresses', 'unit/easy/calls'],
      ...['support/guide-page', 'unit/docs/guides'],
      ...[
        'port/lifecycle.test',
        'compliance/port/lifecycle',
        'support/loopback',
        'support/printed',
      ],
    ];
    const found = readdirSync(root, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts') && !TEXT.some((text) => name.startsWith(text)))
      .flatMap((name) => {
        const text = readFileSync(join(root, name), 'utf8');
        const fixed = text.match(/['"`]127\.\d[^'"`]*|(?:UDP_PORT =|udpPort:) (?!4791)\d+/g) ?? [];
        return fixed.map((what) => `${name}: ${what}`);
      });
    assert.deepEqual(found, []);
  });
});
