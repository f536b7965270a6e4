/**
 * Servers as README prints them and samples have them, each a process, and every field of REQ or
 * SIDR_REQ at its extremes: none ends, and each serves a good client afterwards.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatError, type Ia, openIa } from '../../core/index.js';
import { connect, FlowError } from '../../core/flow/index.js';
import { SeededRandom } from '../../providers/mock/index.js';
import { softroce } from '../../providers/softroce/index.js';
import { editsOf, Hostility } from '../support/hostile-cm.js';
import { loopback } from '../support/loopback.js';
import { fileOf } from '../support/printed-program.js';
import { Program, runSample } from './program.js';

/** printed-program.ts puts what pages print there. */
const PRINTED = loopback(1, 1);
const TIMEOUT_MS = 250;
/** At a time: fewer than wait for their turn. */
const AT_ONCE = 48;
const SEED = 36;

/** Each by a connection of its own: a plain one, and one of dapl/flow with what its servers ask. */
async function connectBy(ia: Ia, address: string, port: number, plain: boolean): Promise<void> {
  if (!plain) {
    const connection = await connect(ia, { address, port, timeoutMs: TIMEOUT_MS });
    await connection.close();
    return;
  }
  const ep = ia.createEndpoint({ pz: ia.createPz() });
  const ended = new Promise<void>((resolve) => ep.connection$.subscribe(() => resolve()));
  ep.connect({ address, connQual: port, timeoutMs: TIMEOUT_MS });
  await ended;
  ep.free();
}

async function attack(
  name: 'REQ' | 'SIDR_REQ',
  ask: (ia: Ia) => Promise<unknown>,
  host: number,
  every = 1,
): Promise<void> {
  const hostility = new Hostility(name);
  const ia = await openIa(hostility.provider(softroce({ addresses: [loopback(76, host)] })));
  const edits = editsOf(name, new SeededRandom(SEED)).filter((_, i) => (i + host) % every === 0);
  try {
    for (let from = 0; from < edits.length; from += AT_ONCE) {
      const batch = edits.slice(from, from + AT_ONCE).map((edit) => {
        hostility.add(edit);
        return ask(ia).catch((error: unknown) => {
          if (!(error instanceof DatError || error instanceof FlowError)) throw error;
        });
      });
      await Promise.all(batch);
    }
    assert.equal(hostility.made.size, edits.length);
  } finally {
    await ia.close('abrupt');
  }
}

/** Every field by a plain connection, and again by one of dapl/flow. */
async function attackPort(address: string, port: number): Promise<void> {
  await attack('REQ', (ia) => connectBy(ia, address, port, true), 1);
  await attack('REQ', (ia) => connectBy(ia, address, port, false), 1);
}

interface Server {
  readonly start: (address: string) => Program;
  /** Printed when it listens. */
  readonly ready: RegExp;
  readonly port: number;
}

const directory = mkdtempSync(join(tmpdir(), 'dapl-hostile-'));
process.once('exit', () => rmSync(directory, { recursive: true, force: true }));

/** Programs that serve one peer after another: each is attacked by a part of all edits. */
const SERVERS: Readonly<Record<string, Server>> = {
  'samples/dapltest': {
    start: (address) => new Program('dapltest', '-T', 'S', '-D', address),
    ready: /Service Point Ready/,
    port: 62_000,
  },
  'samples/transfer': {
    start: (address) => new Program('transfer', 'receive', '--listen', address, '--out', directory),
    ready: /Listening/,
    port: 7471,
  },
  'samples/xrc': {
    start: (address) => {
      const domain = join(directory, 'domain');
      const receiver = ['--domain', domain, '--index', '0', '--receivers', '1'];
      return new Program('xrc', 'receive', '--address', address, ...receiver);
    },
    ready: /receivers at/,
    port: 7475,
  },
};
/** One edit of so many for each of them. */
const EVERY = 3;

const ONE_PEER = 'it ends with its first peer, whoever that is';
const SIMULATED = 'it is on the mock or in one process: no other process reaches it';
const NO_REQUESTS = 'it joins a group, and takes no requests';
const PART = 'it is no whole program, or one that another program of the page starts';
/** Listening programs that are not in SERVERS, and why. */
const OTHERS: Readonly<Record<string, string>> = {
  'README.md': 'attacked below: echo, rpc and hello',
  'docs/channel.md': ONE_PEER,
  'docs/easy.md': ONE_PEER,
  'docs/flow.md': SIMULATED,
  'docs/mock.md': SIMULATED,
  'docs/multicast.md': NO_REQUESTS,
  'docs/rsocket.md': SIMULATED,
  'docs/rx.md': SIMULATED,
  'docs/sdp.md': SIMULATED,
  'docs/softroce.md': PART,
  'docs/xrc.md': SIMULATED,
  'docs/guides/concepts.md': SIMULATED,
  'docs/guides/connections.md': SIMULATED,
  'docs/guides/errors.md': SIMULATED,
  'docs/guides/faults.md': SIMULATED,
  'docs/guides/first-transfer.md': ONE_PEER,
  'docs/guides/memory.md': SIMULATED,
  'docs/guides/rdma-in-an-hour.md': ONE_PEER,
  'docs/guides/tuning.md': ONE_PEER,
  'docs/guides/without-hardware.md': 'attacked below: stop.mjs; main.mjs has the same server',
  'docs/guides/write-a-provider.md': 'its provider has no network',
  'docs/guides/write-a-ulp.md': PART,
  'samples/collectives': 'its ranks accept as many peers as the group has, then no more',
  'samples/dtest': ONE_PEER,
  'samples/hello': 'attacked below: it is the hello of the README',
  'samples/mckey': NO_REQUESTS,
  'samples/policies': SIMULATED,
  'samples/provider-template': 'its provider has no network',
  'samples/rping': ONE_PEER,
  'samples/shared-array': ONE_PEER,
  'samples/udaddy': 'attacked below, by SIDR_REQ',
};

const LISTENS = /\b(?:listen|createPsp|createPspAny|createRsp|datagrams)\(/;

/** Pages whose blocks of code listen, and samples whose files do. */
function listening(): string[] {
  const pages = ['README.md', ...markdownOf('docs'), ...markdownOf('docs/guides')];
  const samples = readdirSync('samples', { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && entry.name !== 'ulp')
    .map(({ name }) => `samples/${name}`);
  return [
    ...pages.filter((page) => {
      const blocks = readFileSync(page, 'utf8').matchAll(/^```[jt]s\n([^]*?)^```/gm);
      return [...blocks].some(([, code = '']) => LISTENS.test(code));
    }),
    ...samples.filter((folder) =>
      readdirSync(folder).some(
        (name) => name.endsWith('.ts') && LISTENS.test(readFileSync(join(folder, name), 'utf8')),
      ),
    ),
  ];
}

function markdownOf(folder: string): string[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.md'))
    .map((name) => `${folder}/${name}`);
}

const readme = readFileSync('README.md', 'utf8');

function printed(name: string): string {
  const [, code] = new RegExp(`\`${name}\\.mjs\`:\n\n\`\`\`js\n([^]*?)\`\`\``).exec(readme) ?? [];
  assert.ok(code, `the README has no ${name}.mjs`);
  return code;
}

describe('Hostile peers', () => {
  const programs: ChildProcess[] = [];

  afterEach(async () => {
    const left = programs.splice(0).filter((each) => each.exitCode === null);
    const gone = left.map((each) => once(each, 'exit'));
    for (const each of left) each.kill('SIGKILL');
    await Promise.all(gone);
  });

  /** @returns the process, and what it says and ends with */
  function start(path: string): { child: ChildProcess; ended: Promise<unknown> } {
    const child = fork(path, { silent: true });
    programs.push(child);
    let said = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => (said += text));
    }
    return { child, ended: once(child, 'close').then(() => ({ code: child.exitCode, said })) };
  }

  for (const [name, port, said] of [
    ['echo', 7000, 'hello over RDMA\n'],
    ['rpc', 7001, `${4 << 20} bytes, all x: true\n`],
  ] as const) {
    it(`README: the ${name} server lives and serves`, async () => {
      const code = printed(`${name}-server`).replace(/^for await/m, `process.send('up');\n$&`);
      const { child } = start(fileOf(code, `hostile-${name}-server`));
      await once(child, 'message');
      await attackPort(PRINTED, port);
      assert.equal(child.exitCode, null);
      const { ended } = start(fileOf(printed(`${name}-client`), `hostile-${name}-client`));
      assert.deepEqual(await ended, { code: 0, said });
      assert.equal(child.exitCode, null);
    });
  }

  it('every other program that listens is named, with the reason', () => {
    const known = [...Object.keys(SERVERS), ...Object.keys(OTHERS)];
    assert.deepEqual(listening().sort(), known.sort());
  });

  it('docs and samples: servers of one peer after another live', async () => {
    const names = Object.keys(SERVERS);
    await Promise.all(
      names.map(async (name, i) => {
        const { start: startServer, ready, port } = SERVERS[name]!;
        const address = loopback(76, 10 + i);
        const program = startServer(address);
        programs.push(program.process);
        await program.printed(ready);
        const ask = (ia: Ia): Promise<void> => connectBy(ia, address, port, true);
        await attack('REQ', ask, 20 + i, EVERY);
        const { exitCode, signalCode } = program.process;
        const ended = exitCode === null && signalCode === null ? '' : (await program.ended).stderr;
        assert.deepEqual([name, exitCode, signalCode, ended], [name, null, null, '']);
      }),
    );
  });

  it('docs/guides: stop.mjs lives, and closes when told', async () => {
    const page = readFileSync('docs/guides/without-hardware.md', 'utf8');
    const [, code] = /`stop\.mjs`:\n\n```js\n([^]*?)```/.exec(page) ?? [];
    const { child, ended } = start(fileOf(code ?? '', 'hostile-stop'));
    await once(child.stdout!, 'data');
    await attack('REQ', (ia) => connectBy(ia, PRINTED, 7476, true), 30, EVERY);
    child.kill('SIGTERM');
    assert.deepEqual(await ended, { code: 0, said: 'listening\nclosed\n' });
  });

  it('README: hello, both ends in one program, ends well', async () => {
    const gate =
      `process.send('up');\nawait new Promise((go) => process.once('message', go));\n` +
      `process.disconnect();\n`;
    const code = readFileSync('samples/hello/main.ts', 'utf8').replace(
      /^ep\.connect/m,
      `${gate}$&`,
    );
    const { child, ended } = start(fileOf(code, 'hostile-hello'));
    await once(child, 'message');
    await attackPort(PRINTED, 7000);
    assert.equal(child.exitCode, null);
    child.send('go');
    const { code: exit, said } = (await ended) as { code: number; said: string };
    assert.equal(exit, 0, said);
    assert.match(said, /hello over RDMA\n$/);
  });

  it('sample udaddy lives and serves', async () => {
    const [server, client] = [loopback(76, 2), loopback(76, 3)];
    const program = new Program('udaddy', '-b', server);
    programs.push(program.process);
    await program.printed(/listening/);
    const service = { address: server, connQual: 7174, timeoutMs: TIMEOUT_MS };
    const ask = async (ia: Ia): Promise<void> => {
      const ep = ia.createUdEndpoint({ pz: ia.createPz() });
      await ep.resolve(service).finally(() => ep.free());
    };
    await attack('SIDR_REQ', ask, 4);
    assert.equal(program.process.exitCode, null);
    const outcome = await runSample('udaddy', '-s', server, '-b', client);
    assert.equal(outcome.code, 0, outcome.stderr);
    assert.equal((await program.ended).code, 0);
  });
});
