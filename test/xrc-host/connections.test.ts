/** Targets of shared XRC domains that are connected by the CM of the host process. */
import assert from 'node:assert/strict';
import { killAll, type Program } from '../slots/programs.js';
import { longIt } from '../support/lane.js';
import { paused } from '../support/patience.js';
import { device, hostsOf, World } from './world.js';

const PORT = 7000;
const LOOK_MS = 10;

describe('Connections of XRC domains between processes', function () {
  this.timeout(120_000);
  const world = new World(98);
  const connect = (...options: readonly string[]): ReturnType<World['connect']> =>
    world.connect(PORT, ...options);
  afterEach(killAll);
  after(() => world.end());

  const reaches = async (
    sender: Program,
    srqn: number,
    to: Program,
    text: string,
  ): Promise<void> => {
    assert.equal(await sender.ask(`send ${srqn} ${text}`), 'SUCCESS');
    assert.match(await to.ask('received 1'), new RegExp(`(^|,)${text}$`));
  };

  it('the host answers: its target reaches both, and the one that accepted is told', async () => {
    const { first, second, sender, srqns, target } = await connect();
    await reaches(sender, srqns[0]!, first, 'one');
    await reaches(sender, srqns[1]!, second, 'two');
    assert.equal(await first.ask('told 1'), `${target} ESTABLISHED`);
    assert.equal(await second.ask(`query ${target}`), 'RTR');
  });

  longIt(
    'the creator, the broker, is killed: no DREQ; the last one goes, and DREQ comes',
    async () => {
      const { first, second, sender, srqns, target } = await connect();
      assert.equal(await second.ask(`register ${target}`), 'registered');
      await first.kill();
      // What takes over as broker tells the peers of what has been killed: not this one.
      for (let n = 1; n <= 8; n++) {
        assert.equal(await sender.ask(`send ${srqns[1]} still`), 'SUCCESS');
        await paused(20 * LOOK_MS);
      }
      assert.equal(await second.ask('received 8'), Array(8).fill('still').join(','));
      await second.kill();
      assert.equal(await sender.ask('ended'), 'DISCONNECTED');
    },
  );

  it('unregistering, though not the last, disconnects nothing; the last one does', async () => {
    const { first, second, sender, srqns, target } = await connect();
    await second.ask(`register ${target}`);
    assert.equal(await first.ask(`unregister ${target}`), 'unregistered');
    await reaches(sender, srqns[0]!, first, 'kept');
    assert.equal(await second.ask(`unregister ${target}`), 'unregistered');
    assert.equal(await sender.ask('ended'), 'DISCONNECTED');
    assert.equal(await first.ask('told 2'), `${target} ESTABLISHED,${target} DISCONNECTED`);
    assert.match(await second.ask(`query ${target}`), /DAT_INVALID_PARAMETER.*no target/);
  });

  longIt('owned by its domain, it outlives its creator, and ends with the domain', async () => {
    const { first, second, sender, srqns, target } = await connect('domain');
    await first.kill();
    await paused(20 * LOOK_MS);
    await reaches(sender, srqns[1]!, second, 'owned');
    assert.equal(await second.ask(`query ${target}`), 'RTR');
    assert.match(await second.ask(`unregister ${target}`), /DAT_INVALID_PARAMETER/);
    assert.equal(await second.ask('leave'), 'left');
    assert.equal(await sender.ask('ended'), 'DISCONNECTED');
  });

  longIt('the sender disconnects: the one that accepted is told, others hear events', async () => {
    const { first, second, sender, target } = await connect();
    await second.ask(`register ${target}`);
    assert.equal(await sender.ask('close'), 'closed');
    const told = (await first.ask('told 3')).split(',');
    const expected = ['DISCONNECTED', 'ESTABLISHED', 'QP_LAST_WQE_REACHED'];
    assert.deepEqual(
      told.toSorted(),
      expected.map((name) => `${target} ${name}`),
    );
    assert.equal(await second.ask('told 1'), `${target} QP_LAST_WQE_REACHED`);
    assert.equal(await second.ask(`query ${target}`), 'ERR');
  });

  longIt(
    'the sender is killed: the target stays, and a new sender has one of its own',
    async () => {
      const { first, sender, srqns, target, address } = await connect();
      await sender.kill();
      const other = await device(world.newAddress(), 'alone');
      await other.ask('initiator');
      assert.equal(await other.ask(`connect ${address} ${PORT}`), 'ESTABLISHED');
      const targets = (await first.ask('accepted 2')).split(',').map(Number);
      assert.equal(targets[0], target);
      assert.notEqual(targets[1], target);
      await reaches(other, srqns[0]!, first, 'again');
      assert.equal(await first.ask(`query ${target}`), 'RTR');
    },
  );

  longIt(
    'the host is killed: a fatal event for each registered, once, and senders learn',
    async () => {
      const { first, second, sender, target, address } = await connect();
      await second.ask(`register ${target}`);
      const [host] = hostsOf(address);
      assert.ok(host !== undefined);
      assert.equal(await first.ask('told 1'), `${target} ESTABLISHED`);
      process.kill(host, 'SIGKILL');
      assert.equal(await sender.ask('ended'), 'DISCONNECTED');
      assert.equal(await first.ask('told 2'), `${target} ESTABLISHED,${target} QP_FATAL`);
      assert.equal(await second.ask('told 1'), `${target} QP_FATAL`);
      await paused(LOOK_MS);
      assert.equal(await first.ask('told 2'), `${target} ESTABLISHED,${target} QP_FATAL`);
      assert.equal(await second.ask('told 1'), `${target} QP_FATAL`);
    },
  );
});
