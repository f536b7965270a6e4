/** Groups on real networks, in namespaces: whose link it is, routes that lack, links that go. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type Family, Namespaces } from '../network/namespaces.js';
import { killAll, Program } from '../slots/programs.js';
import { leaveOut } from '../support/left-out.js';

const PROGRAM = join(import.meta.dirname, 'program.js');
const UDP_PORT = 4791;
/** Of a link, of a site, and of any scope: RFC 4291 2.7; 224.0.0.0/24 is that of a link. */
const GROUPS: Readonly<Record<Family, readonly string[]>> = {
  ipv4: ['224.0.0.77', '239.195.9.9'],
  ipv6: ['ff02::4791', 'ff05::4791', 'ff0e::4791'],
};
const GROUP = { ipv4: '239.195.9.9', ipv6: 'ff05::4791' } as const;

describe('softroce: multicast groups between network namespaces', function () {
  this.timeout(120_000);
  let net: Namespaces;

  before(function () {
    const problem = Namespaces.problem();
    if (problem !== undefined) {
      leaveOut(this, problem, 'as root, with iproute2: npx mocha dist/test/multicast/*.test.js');
    }
  });
  beforeEach(() => (net = new Namespaces(9000)));
  afterEach(async () => {
    await killAll();
    await net.end();
  });

  async function opened(namespace: string, address: string, words = ''): Promise<Program> {
    const command = net.command(namespace, process.execPath, PROGRAM);
    const program = new Program({ command });
    assert.equal(await program.ask(`open ${address} ${UDP_PORT} ${words}`), 'open');
    return program;
  }

  for (const family of ['ipv4', 'ipv6'] as const) {
    for (const port of ['native', 'dgram'] as const) {
      it(`members of a link hear a group, each its copy: ${family}, ${port}`, async () => {
        const [own, router] = [net.address('a', family), net.gateway('a', family)];
        const near = await opened('a', own, port === 'native' ? 'shared' : port);
        const members = [near, await opened('r', router, port)];
        if (port === 'native') members.push(await opened('a', own, 'shared'));
        for (const [i, group] of GROUPS[family].entries()) {
          for (const program of members) assert.equal(await program.ask(`join ${group}`), 'joined');
          for (const [teller, address] of [
            [members[1]!, router],
            [near, own],
          ] as const) {
            assert.equal(await teller.ask(`tell ${group} ${i}`), 'told');
            for (const each of members) {
              assert.equal(await each.ask('hear 1'), `${i} from ${address}`);
            }
          }
        }
      });

      it(`an interface that is gone is named; members hear on: ${family}, ${port}`, async () => {
        const [own, router] = [net.address('a', family), net.gateway('a', family)];
        const member = await opened('a', own, port);
        const outside = await opened('r', router, port);
        const group = GROUP[family];
        await member.ask(`join ${group}`);
        net.linkDown('a');
        net.linkUp('a');
        assert.equal(await outside.ask(`tell ${group} 1`), 'told');
        assert.equal(await member.ask('hear 1'), `1 from ${router}`);
        net.ip('a', `addr del ${own}/${family === 'ipv4' ? 24 : 64} dev eth0`);
        for (const command of [`join ${GROUPS[family][0]}`, `tell ${group} 2`]) {
          const said = await member.ask(command);
          assert.match(said, /^DAT_INVALID_ADDRESS: .*is gone/, command);
          assert.ok(said.includes(own) && said.includes(command.split(' ')[1]!), said);
        }
        assert.equal(await outside.ask(`tell ${group} 3`), 'told');
        assert.equal(await member.ask('hear 1'), `3 from ${router}`);
      });
    }
  }

  for (const family of ['ipv4', 'ipv6'] as const) {
    it(`a group of one link is not that of another one of the host: ${family}`, async () => {
      const sides = ['a', 'b'] as const;
      const [ofA, ofB] = [
        await opened('r', net.gateway('a', family)),
        await opened('r', net.gateway('b', family)),
      ];
      const outside = { a: await opened('a', net.address('a', family)), b: ofB };
      for (const group of GROUPS[family]) {
        for (const program of [ofA, ofB])
          assert.equal(await program.ask(`join ${group}`), 'joined');
        for (const side of sides) await outside[side].ask(`tell ${group} ${side === 'a' ? 1 : 2}`);
        assert.equal(await ofA.ask('hear 1'), `1 from ${net.address('a', family)}`);
        assert.equal(await ofB.ask('hear 1'), `2 from ${net.gateway('b', family)}`);
      }
    });
  }

  for (const port of ['native', 'dgram'] as const) {
    it(`without a route for multicast the error says which one to add: ${port}`, async () => {
      const group = GROUP.ipv6;
      const programs: Record<string, Program> = { '::1': await opened('a', '::1', port) };
      // node:dgram cannot tell the datagrams of one interface from those of another one.
      const others = port === 'native' ? [net.address('a', 'ipv6')] : [];
      for (const address of others) programs[address] = await opened('a', address, port);
      for (const program of Object.values(programs)) await program.ask(`join ${group}`);
      const refused = await programs['::1']!.ask(`tell ${group} 1`);
      const sentence = `${group}: the interface of ::1 has no route for multicast`;
      assert.ok(refused.startsWith('DAT_INVALID_ADDRESS: ') && refused.includes(sentence), refused);
      const [, command = ''] = /ip -6 (route add [^)]*)/.exec(refused) ?? [];
      net.ip('a', command);
      for (const [from, program] of Object.entries(programs)) {
        assert.equal(await program.ask(`tell ${group} 2`), 'told');
        assert.equal(await program.ask('hear 1'), `2 from ${from}`);
      }
    });
  }
});
