/** A program that gets node:dgram without having chosen it hears of that, once, and why. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { loopback } from '../../support/loopback.js';

const dist = join(import.meta.dirname, '../../..');
const at = (path: string): string => JSON.stringify(join(dist, path));

/** Opens two adapters where no addon can be loaded. */
function run(port: string, env: Readonly<Record<string, string>> = {}): string {
  const script = `
    process.dlopen = () => { throw new Error('no addons here'); };
    const { openIa } = await import(${at('plugins/node/index.js')});
    const { softroce } = await import(${at('providers/softroce/index.js')});
    for (const address of ['${loopback(75, 1)}', '${loopback(75, 2)}']) {
      await (await openIa(softroce({ addresses: [address], port: '${port}' }))).close();
    }`;
  const { stderr, status } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    encoding: 'utf8',
    env: { ...process.env, ...env },
  });
  assert.equal(status, 0, stderr);
  return stderr;
}

const LOST = /softroce works over node:dgram, since .* \(no addons here/g;

describe('softroce without its native port', function () {
  this.timeout(60_000);

  it('says so once on standard error, without a logger', () => {
    const text = run('auto');
    assert.match(text, /^\(node:\d+\) \[DAPL_DGRAM\] DaplWarning: softroce works over node:dgram/);
    assert.equal(text.match(LOST)?.length, 1, text);
  });

  it('says so once in the log where there is one, and not where dgram was chosen', () => {
    const text = run('auto', { DAPL_LOG: 'warn' });
    assert.match(text, /^\S+ warn softroce works/m);
    assert.equal(text.match(LOST)?.length, 1, text);
    assert.doesNotMatch(text, /DaplWarning/);
    assert.equal(run('dgram'), '');
  });
});
