// Opening where there is nothing to open: each in a process of its own, because libraries that are
// loaded stay loaded.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { leaveOut } from '../../support/left-out.js';
import { loopback, testPort } from '../../support/loopback.js';

const ROOT = join(import.meta.dirname, '../../../..');
const HAS_RDMA = 'the kernel of this machine has RDMA devices';

interface Refusal {
  readonly code: string;
  readonly message: string;
}

/** Opens what the expression says; gives the error. */
function openingError(target: string, env: Record<string, string> = {}): Refusal {
  const program = `
    import { openIa } from 'dapl';
    import { softroce } from 'dapl/providers/softroce';
    import { verbs } from 'dapl/providers/verbs';
    try {
      const ia = await openIa(${target});
      await ia.close('abrupt');
      console.log(JSON.stringify({ code: 'none', message: 'it opened' }));
    } catch ({ code, message }) {
      console.log(JSON.stringify({ code, message }));
    }`;
  const { stdout, stderr, status } = spawnSync(
    process.execPath,
    ['--input-type=module', '-e', program],
    { cwd: ROOT, encoding: 'utf8', env: { ...process.env, ...env } },
  );
  assert.equal(status, 0, stderr);
  return JSON.parse(stdout) as Refusal;
}

describe('verbs: opening', () => {
  const hasRdma = existsSync('/sys/class/infiniband');
  before(function () {
    if (process.platform !== 'linux') leaveOut(this, 'verbs are for Linux', 'npm test there');
  });

  it('names the libraries that are missing, and how to install them', () => {
    const { code, message } = openingError(
      "verbs({ libraries: { verbs: '/nowhere/libibverbs.so.1', rdmacm: '/nowhere/rdma.so' } })",
    );
    assert.equal(code, 'DAT_PROVIDER_NOT_FOUND');
    assert.match(message, /\/nowhere\/libibverbs\.so\.1 \(cannot open shared object file/);
    assert.match(message, /\/nowhere\/rdma\.so \(cannot open/);
    assert.match(message, /apt-get install libibverbs1 librdmacm1/);
  });

  it('refuses a library that is another one', () => {
    const { message } = openingError("verbs({ libraries: { verbs: 'libc.so.6' } })");
    assert.match(message, /libc\.so\.6 \(has no ibv_get_device_list/);
  });

  it('says that there is no device', function () {
    if (hasRdma) leaveOut(this, HAS_RDMA, 'npm test where there is none');
    const { code, message } = openingError('verbs()');
    assert.equal(code, 'DAT_PROVIDER_NOT_FOUND');
    // On a machine without libraries either, those are named first.
    assert.match(message, /no RDMA device: .*rdma link add rxe0|apt-get install/);
  });

  it('refuses options before anything is opened', () => {
    const { message } = openingError("(() => verbs({ devise: 'rxe0' }))()");
    assert.match(message, /option is "devise"; it must be one of/);
  });

  it('is found by a line of dat.conf, and stands beside softroce in one process', function () {
    if (hasRdma) leaveOut(this, HAS_RDMA, 'npm test where there is none');
    const directory = mkdtempSync(join(tmpdir(), 'dapl-dat-conf-'));
    try {
      const file = join(directory, 'dat.conf');
      const line = (name: string, library: string, params: string): string =>
        `${name} u2.0 nonthreadsafe default dapl/providers/${library} dapl.2.0 "${params}" ""\n`;
      writeFileSync(
        file,
        line('soft', 'softroce', `${loopback(70, 1)} udpPort=${testPort(2)}`) +
          line('ofa-v2-rxe', 'verbs', 'eth0 0') +
          line('bad', 'verbs', 'eth0 0 gid=1'),
      );
      const env = { DAT_OVERRIDE: file };
      const inOneProcess = "await openIa('soft') && 'ofa-v2-rxe'";
      const named = openingError(inOneProcess, env);
      assert.match(named.message, /no RDMA device|apt-get install/);
      assert.match(openingError("'bad'", env).message, /refuses its ia_params.*gidIndex, polling/);
      assert.equal(openingError("'soft'", env).code, 'none');
    } finally {
      rmSync(directory, { recursive: true });
    }
  });
});
