/** Programs of one host in one group: each has its copy, whatever becomes of the others. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { killAll, Program } from '../slots/programs.js';
import { loopback, testPort } from '../support/loopback.js';

const PROGRAM = join(import.meta.dirname, 'program.js');
const UDP_PORT = testPort(40);
const GROUP = '239.195.1.1';
const OTHER = '239.195.1.2';
/** Enough for Node as it loads, and not for as many groups. */
const FEW_FILES = 200;
let hosts = 1;

const newAddress = (): string => loopback(95, hosts++);

async function opened(address: string, words = '', command?: string[]): Promise<Program> {
  const program = new Program({ command: command ?? [process.execPath, PROGRAM] });
  assert.equal(await program.ask(`open ${address} ${UDP_PORT} ${words}`), 'open');
  return program;
}

async function joined(address: string, words = ''): Promise<Program> {
  const program = await opened(address, words);
  assert.equal(await program.ask(`join ${GROUP}`), 'joined');
  return program;
}

async function assertHeard(programs: readonly Program[], expected: string): Promise<void> {
  const count = expected.split(' from ')[0]!.split(' ').length;
  for (const program of programs) assert.equal(await program.ask(`hear ${count}`), expected);
}

describe('softroce: programs of one host in a multicast group', function () {
  this.timeout(120_000);
  afterEach(killAll);

  for (const port of ['native', 'dgram'] as const) {
    it(`each has its copy; one is killed, the others hear on: ${port}`, async () => {
      const lost = newAddress();
      const members = [
        await joined(newAddress(), port),
        await joined(lost, port),
        // Either port hears the other.
        await joined(newAddress(), port === 'native' ? 'dgram' : 'native'),
      ];
      const [first, killed, last] = members as [Program, Program, Program];
      const from = newAddress();
      const outside = await opened(from, port);
      for (const number of [1, 2]) await outside.ask(`tell ${GROUP} ${number}`);
      await assertHeard(members, `1 2 from ${from}`);
      await killed.kill();
      await outside.ask(`tell ${GROUP} 3`);
      await assertHeard([first, last], `3 from ${from}`);
      const again = await joined(lost, port);
      await outside.ask(`tell ${GROUP} 4`);
      await assertHeard([first, again, last], `4 from ${from}`);
      await first.ask(`leave ${GROUP}`);
      await first.ask(`join ${OTHER}`);
      for (const group of [GROUP, OTHER]) await outside.ask(`tell ${group} 5`);
      await assertHeard([first, again, last], `5 from ${from}`);
      assert.equal(await first.ask('close'), 'closed');
      await outside.ask(`tell ${GROUP} 6`);
      await assertHeard([again, last], `6 from ${from}`);
    });
  }

  it('programs that share an address have a copy each; the broker is killed', async () => {
    const [address, from] = [newAddress(), newAddress()];
    const sharing = [];
    for (let i = 0; i < 3; i++) sharing.push(await joined(address, 'shared'));
    const [broker, second, third] = sharing as [Program, Program, Program];
    const outside = await joined(from);
    await outside.ask(`tell ${GROUP} 1`);
    await assertHeard([...sharing, outside], `1 from ${from}`);
    // The sender is a member, and hears itself.
    await second.ask(`tell ${GROUP} 2`);
    await assertHeard([...sharing, outside], `2 from ${address}`);
    await broker.kill();
    await third.ask(`tell ${GROUP} 3`);
    await assertHeard([second, third, outside], `3 from ${address}`);
    await second.ask(`leave ${GROUP}`);
    const fourth = await joined(address, 'shared');
    await outside.ask(`tell ${GROUP} 4`);
    await assertHeard([third, fourth, outside], `4 from ${from}`);
    await second.ask(`join ${GROUP}`);
    await fourth.ask(`tell ${GROUP} 5`);
    await assertHeard([second, third, fourth, outside], `5 from ${address}`);
  });

  for (const port of ['native', 'dgram'] as const) {
    it(`loopback false: own datagrams do not come back, others hear them: ${port}`, async () => {
      const [quiet, from, other] = [newAddress(), newAddress(), newAddress()];
      const program = await opened(quiet, port);
      const sharing = await opened(from, 'shared');
      const beside = await joined(from, 'shared');
      const member = await joined(other, port);
      for (const silent of [program, sharing]) await silent.ask(`join ${GROUP} no-loopback`);
      await program.ask(`tell ${GROUP} 1`);
      await assertHeard([sharing, beside, member], `1 from ${quiet}`);
      await sharing.ask(`tell ${GROUP} 2`);
      // It has heard nothing since, or that would come first.
      await assertHeard([program, beside, member], `2 from ${from}`);
      await member.ask(`tell ${GROUP} 3`);
      await assertHeard([program, sharing, beside, member], `3 from ${other}`);
    });

    it(`sendOnly: it is heard, and hears nothing: ${port}`, async () => {
      const [silent, other] = [newAddress(), newAddress()];
      const program = await opened(silent, port);
      const member = await joined(other, port);
      await program.ask(`join ${GROUP} send-only`);
      await member.ask(`tell ${GROUP} 1`);
      await program.ask(`tell ${GROUP} 2`);
      await assertHeard([member], `1 from ${other}`);
      await assertHeard([member], `2 from ${silent}`);
      await program.ask(`leave ${GROUP}`);
      await program.ask(`join ${GROUP}`);
      await member.ask(`tell ${GROUP} 3`);
      await assertHeard([program], `3 from ${other}`);
    });

    it(`a program out of files is told so, and hears the groups that it has: ${port}`, async () => {
      const limited = `ulimit -n ${FEW_FILES}; exec "$0" "$1"`;
      const command = ['/bin/sh', '-c', limited, process.execPath, PROGRAM];
      const program = await opened(newAddress(), port, command);
      await program.ask(`join ${GROUP}`);
      const refused = await program.ask(`fill 239.195.2.1 ${FEW_FILES}`);
      assert.match(refused, /^DAT_INSUFFICIENT_RESOURCES: .*239\.195\.2\.\d+.*ulimit -n/);
      const from = newAddress();
      const outside = await opened(from);
      await outside.ask(`tell ${GROUP} 1`);
      await assertHeard([program], `1 from ${from}`);
      await program.ask('leave 239.195.2.1');
      assert.equal(await program.ask(`join ${OTHER}`), 'joined');
    });
  }

  it('a device may be in hundreds of groups', async () => {
    const from = newAddress();
    const [program, outside] = [await opened(newAddress()), await opened(from)];
    assert.equal(await program.ask('fill 239.195.3.0 250'), 'joined 250');
    for (const last of [0, 100, 249]) await outside.ask(`tell 239.195.3.${last} ${last}`);
    const heard = await program.ask('hear 3');
    assert.deepEqual(heard.split(' ').slice(0, 3).sort(), ['0', '100', '249']);
  });
});
