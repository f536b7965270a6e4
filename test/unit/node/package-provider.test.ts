// A provider of a package by name: found from the module that asks, and from nowhere else.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { openIa } from 'dapl';
import { decorate } from 'dapl/spi/decorators';
import { loadProvider } from '../../../plugins/node/system-registry.js';

const MOCK = new URL('../../../providers/mock/index.js', import.meta.url).href;
/** A package whose provider is the mock. */
const SOURCE = `export { datProviderInit } from '${MOCK}';\n`;

describe('A provider of a package by name', () => {
  const project = mkdtempSync(join(tmpdir(), 'dapl-from-'));
  const here = join(project, 'app/main.js');
  before(() => {
    const modules = join(project, 'node_modules');
    for (const [name, source] of [
      ['acme-provider', SOURCE],
      ['acme-empty', 'export const nothing = 1;\n'],
    ] as const) {
      mkdirSync(join(modules, name), { recursive: true });
      const manifest = { name, version: '1.0.0', type: 'module', exports: './index.js' };
      writeFileSync(join(modules, name, 'package.json'), JSON.stringify(manifest));
      writeFileSync(join(modules, name, 'index.js'), source);
    }
    mkdirSync(join(project, 'app'));
    writeFileSync(join(project, 'app/provider.mjs'), SOURCE);
  });
  after(() => {
    rmSync(project, { recursive: true });
  });

  for (const [how, from] of [
    ['URL', pathToFileURL(here).href],
    ['path', here],
  ] as const) {
    it(`opens, asked for by the ${how} of a module`, async () => {
      const iaParams = '192.0.2.7 fabric=from';
      const ia = await openIa('acme-provider', { from, iaParams });
      assert.equal(ia.address, '192.0.2.7');
      await ia.close();
    });
  }

  it('opens with what is to stand over it', async () => {
    const seen: string[] = [];
    const iaParams = '192.0.2.9 fabric=from';
    const ia = await openIa('acme-provider', {
      from: here,
      iaParams,
      decorate: (provider) =>
        decorate(provider, {
          device: ({ name }) => {
            seen.push(name);
            return {};
          },
        }),
    });
    assert.deepEqual(seen, ['mock 192.0.2.9']);
    await ia.close();
    const none = openIa('acme-provider', { from: here, iaParams, decorate: () => ({}) as never });
    await assert.rejects(none, { code: 'DAT_INVALID_PARAMETER', message: /decorate .*a provider/ });
  });

  it('opens by a path from the folder of the module', async () => {
    const ia = await openIa('./provider.mjs', { from: here, iaParams: '192.0.2.8 fabric=from' });
    assert.equal(ia.address, '192.0.2.8');
    await ia.close();
  });

  it('is not found from elsewhere, the working directory included', async () => {
    const before = process.cwd();
    process.chdir(project);
    try {
      const from = import.meta.url;
      const asked = openIa('acme-provider', { from, iaParams: '192.0.2.7 fabric=from' });
      await assert.rejects(asked, {
        code: 'DAT_PROVIDER_NOT_FOUND',
        message: /"acme-provider": cannot load acme-provider: no such entry for .*MODULE_NOT_FOUND/,
      });
      await assert.rejects(loadProvider('acme-provider', '/etc/dat.conf'));
    } finally {
      process.chdir(before);
    }
  });

  it('says what is wrong with it', async () => {
    const empty = openIa('acme-empty', { from: here });
    await assert.rejects(empty, /acme-empty exports no function datProviderInit/);
    const refused = openIa('acme-provider', { from: here, iaParams: 'nowhere fabric=from' });
    await assert.rejects(refused, {
      code: 'DAT_INVALID_PARAMETER',
      message: /refuses its ia_params "nowhere fabric=from"/,
    });
    for (const from of ['app/main.js', 'https://example.org/main.js', '']) {
      const wrong = openIa('acme-provider', { from });
      await assert.rejects(wrong, {
        code: 'DAT_INVALID_PARAMETER',
        message: /from .*the URL of a module/,
      });
    }
    const alone = openIa('acme-provider', { iaParams: 'x' });
    await assert.rejects(alone, { code: 'DAT_INVALID_PARAMETER' });
    const object = openIa({ name: 'acme-provider' }, { from: here });
    await assert.rejects(object, { code: 'DAT_INVALID_PARAMETER', message: /name/ });
  });
});
