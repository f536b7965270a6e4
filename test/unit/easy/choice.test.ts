// Which adapter `dapl/easy` takes: four places, in their order, and what is said when one fails.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openIa, systemRegistry } from 'dapl';
import { connect, FlowError, listen, type ListenOptions } from 'dapl/easy';
import { Fabric, mock } from 'dapl/providers/mock';
import { loopback } from '../../support/loopback.js';

const ROOT = join(import.meta.dirname, '../../../..');
const ADDRESS = '192.0.2.9';
const PORT = 7;
const NETWORK = 21;
const NAME = 'easy-choice';

/** A fabric with a provider of one node. */
function place(address = ADDRESS): { fabric: Fabric; provider: ReturnType<typeof mock> } {
  const fabric = new Fabric({ seed: 3, autoRun: true });
  return { fabric, provider: mock({ fabric, address }) };
}

/** Whether what listens is on that fabric: a peer there connects. */
async function isOn(fabric: Fabric, options: ListenOptions): Promise<boolean> {
  const server = await listen(options);
  const ia = await openIa(mock({ fabric, address: '192.0.2.1' }));
  try {
    const conn = await connect({ ia, address: ADDRESS, port: PORT, timeoutMs: 1000 });
    await conn.close();
    return true;
  } catch {
    return false;
  } finally {
    await server.close();
    await ia.close();
  }
}

const refusal =
  (code: string, message: RegExp) =>
  (error: unknown): boolean =>
    FlowError.isFlowError(error) && error.code === code && message.test(error.message);

describe('easy: which adapter', () => {
  const before = process.env['DAPL_PROVIDER'];
  const registered: string[] = [];
  const register = async (provider: ReturnType<typeof mock>, name: string): Promise<void> => {
    (await systemRegistry()).register(provider, name);
    registered.push(name);
  };
  beforeEach(() => delete process.env['DAPL_PROVIDER']);
  afterEach(async () => {
    delete process.env['DAPL_PROVIDER'];
    if (before !== undefined) process.env['DAPL_PROVIDER'] = before;
    const registry = await systemRegistry();
    for (const name of registered.splice(0)) registry.unregister(name);
  });

  it('the option first, then the environment, then what has a name', async () => {
    const [option, environment, byName] = [place(), place(), place()];
    const wanted = { address: ADDRESS, port: PORT };
    await register(byName.provider, NAME);
    assert.ok(await isOn(byName.fabric, wanted));
    await register(environment.provider, `${NAME}-2`);
    process.env['DAPL_PROVIDER'] = `${NAME}-2`;
    assert.ok(await isOn(environment.fabric, wanted));
    assert.equal(await isOn(byName.fabric, wanted), false);
    assert.ok(await isOn(option.fabric, { ...wanted, provider: option.provider }));
    assert.ok(await isOn(byName.fabric, { ...wanted, provider: NAME }));
  });

  it('softroce last: what it says of an address that is not there names it', async () => {
    await assert.rejects(
      listen({ address: ADDRESS, port: PORT }),
      refusal('DAT_INVALID_ADDRESS', /that softroce, the default chooses: .*192\.0\.2\.9/),
    );
  });

  it('an adapter with a name that does not lead there is passed over', async () => {
    await register(place('192.0.2.77').provider, NAME);
    const server = await listen({ address: loopback(NETWORK, 1), port: PORT });
    assert.equal(server.address, loopback(NETWORK, 1));
    await server.close();
  });

  it('softroce by name is opened on the address, whatever else has a name', async () => {
    const address = loopback(NETWORK, 2);
    await register(place(address).provider, NAME);
    process.env['DAPL_PROVIDER'] = 'softroce';
    const server = await listen({ address, port: PORT });
    assert.equal(server.ia.query().provider.providerName, 'softroce');
    await server.close();
  });

  it('names the place that has chosen what fails', async () => {
    const wanted = { address: ADDRESS, port: PORT };
    await assert.rejects(
      listen({ ...wanted, provider: 'no-such-adapter' }),
      refusal('DAT_PROVIDER_NOT_FOUND', /that the option provider chooses: .*"no-such-adapter"/),
    );
    process.env['DAPL_PROVIDER'] = 'another';
    await assert.rejects(
      connect(wanted),
      refusal('DAT_PROVIDER_NOT_FOUND', /that the environment variable DAPL_PROVIDER .*"another"/),
    );
  });

  it('is on the address that was asked for, or refused', async () => {
    const { provider } = place();
    const message = /option provider chooses: .*on 192\.0\.2\.9, not on 192\.0\.2\.10/;
    const other = '192.0.2.10';
    await assert.rejects(
      listen({ provider, address: other, port: PORT }),
      refusal('DAT_INVALID_ADDRESS', message),
    );
    await assert.rejects(
      connect({ provider, localAddress: other, address: ADDRESS, port: PORT }),
      refusal('DAT_INVALID_ADDRESS', message),
    );
  });

  // In a process of its own, which may read another file, and load the libraries of verbs.
  it('by dat.conf: the first line that leads there, past shared objects; or verbs', () => {
    const directory = mkdtempSync(join(tmpdir(), 'dapl-easy-'));
    const path = join(directory, 'dat.conf');
    const line = (name: string, lib: string, params: string): string =>
      `${name} u2.0 nonthreadsafe default ${lib} dapl.2.0 "${params}" ""\n`;
    const own = loopback(NETWORK, 3);
    writeFileSync(
      path,
      line('ofa-v2-mlx', 'libdaplofa.so.2', 'mlx5_0 1') +
        line('elsewhere', 'dapl/providers/softroce', '192.0.2.200') +
        line('here', 'dapl/providers/softroce', `${own} mtuBytes=1024`),
    );
    const addresses = [own, '192.0.2.200', loopback(NETWORK, 4)];
    const program = `
      import { listen } from 'dapl/easy';
      const wanted = ${JSON.stringify(addresses)}.map((address) => ({ address, port: 7 }));
      for (const options of [...wanted, { ...wanted[1], provider: 'verbs' }]) {
        try {
          const server = await listen(options);
          console.log(server.ia.query().provider.providerName, server.address);
          await server.close();
        } catch ({ code, message }) {
          console.log(code, message);
        }
      }`;
    const env = { ...process.env, DAT_OVERRIDE: path };
    const args = ['--input-type=module', '-e', program];
    const done = spawnSync(process.execPath, args, { cwd: ROOT, encoding: 'utf8', env });
    rmSync(directory, { recursive: true });
    assert.equal(done.status, 0, done.stderr);
    const [found, failed, passedOver, verbs] = done.stdout.split('\n');
    assert.equal(found, `here ${own}`);
    assert.match(failed ?? '', /^DAT_INVALID_ADDRESS .*that dat\.conf chooses/);
    assert.equal(passedOver, `softroce ${loopback(NETWORK, 4)}`);
    assert.match(verbs ?? '', /^DAT_\w+ .*that the option provider chooses: openIa: /);
  });
});
