/** XRC domains of several processes on one softroce address, with each of them killed in turn. */
import assert from 'node:assert/strict';
import { killAll } from '../slots/programs.js';
import { longIt } from '../support/lane.js';
import { paused } from '../support/patience.js';
import { device, hostsOf, World } from './world.js';

const LOOK_MS = 10;

describe('XRC domains between processes', function () {
  this.timeout(120_000);
  const world = new World(96);
  const reach = world.reach.bind(world);
  afterEach(killAll);
  after(() => world.end());

  it('one connection reaches both: sends and RDMA, into the memory of each', async () => {
    const { first, second, sender, srqns } = await reach();
    for (const [i, program] of [first, second].entries()) {
      for (let n = 1; n <= 40; n++) {
        assert.equal(await sender.ask(`send ${srqns[i]} to-${i}-${n}`), 'SUCCESS');
      }
      const came = (await program.ask('received 40')).split(',');
      assert.deepEqual(
        came,
        Array.from({ length: 40 }, (_, n) => `to-${i}-${n + 1}`),
      );
      const window = await program.ask('window');
      assert.equal(await sender.ask(`write ${srqns[i]} ${window} five${i}`), 'SUCCESS');
      assert.equal(await program.ask('bytes'), `five${i}`);
    }
    // A key of one is not in the zone of the other's queue.
    const foreign = await first.ask('window');
    assert.equal(await sender.ask(`write ${srqns[1]} ${foreign} wrong`), 'REMOTE_ACCESS');
  });

  it('a target outlives its creator, the broker, while another is registered', async () => {
    const { first, second, sender, srqns, target } = await reach();
    assert.equal(await second.ask(`register ${target}`), 'registered');
    await first.kill();
    assert.equal(await sender.ask(`send ${srqns[1]} still`), 'SUCCESS');
    assert.equal(await second.ask('received 1'), 'still');
    assert.equal(await second.ask(`query ${target}`), 'RTR');
    // The last one goes: it ends, and the sender learns of it.
    assert.equal(await second.ask(`unregister ${target}`), 'unregistered');
    assert.match(await second.ask(`query ${target}`), /DAT_INVALID_PARAMETER.*no target/);
    assert.equal(await sender.ask(`send ${srqns[1]} late`), 'TRANSPORT');
  });

  longIt('unregistering is destroying, for the last one only', async () => {
    const { first, second, sender, srqns, target } = await reach();
    await second.ask(`register ${target}`);
    assert.equal(await first.ask(`unregister ${target}`), 'unregistered');
    assert.match(await first.ask(`unregister ${target}`), /DAT_INVALID_PARAMETER/);
    assert.equal(await sender.ask(`send ${srqns[0]} kept`), 'SUCCESS');
    assert.equal(await first.ask('received 1'), 'kept');
    await second.kill();
    // The host learns of it by the end of its socket.
    while (!/no target/.test(await first.ask(`query ${target}`))) await paused(LOOK_MS);
    assert.equal(await sender.ask(`send ${srqns[0]} late`), 'TRANSPORT');
  });

  longIt('a target that its domain owns needs no consumers, and ends with the domain', async () => {
    const { first, second, sender, srqns, target } = await reach('domain');
    assert.match(await first.ask(`unregister ${target}`), /DAT_INVALID_PARAMETER/);
    assert.equal(await sender.ask(`send ${srqns[0]} owned`), 'SUCCESS');
    assert.equal(await first.ask('received 1'), 'owned');
    assert.equal(await second.ask('leave'), 'left');
    assert.equal(await sender.ask(`send ${srqns[0]} still`), 'SUCCESS');
    assert.equal(await first.ask('leave'), 'left');
    assert.equal(await sender.ask(`send ${srqns[0]} late`), 'TRANSPORT');
  });

  longIt('an error of the target is told to each registered process, once', async () => {
    const { first, second, sender, target } = await reach();
    await second.ask(`register ${target}`);
    assert.equal(await sender.ask('send 77 nowhere'), 'REMOTE_RESPONDER');
    const expected = ['QP_REQ_ERR', 'QP_LAST_WQE_REACHED'].map((event) => `${target} ${event}`);
    for (const program of [first, second]) {
      const told = (await program.ask('told 2')).split(',');
      assert.deepEqual(told.toSorted(), expected.toSorted());
    }
  });

  longIt('the low watermark of a queue is told to its process, once for each arming', async () => {
    const { first, second, sender, srqns } = await reach();
    for (const program of [first, second]) assert.equal(await program.ask('mark 16'), 'armed');
    const send = async (i: number, text: string): Promise<void> =>
      assert.equal(await sender.ask(`send ${srqns[i]} ${text}`), 'SUCCESS');
    for (const text of ['one', 'two', 'three']) await send(1, text);
    assert.equal(await second.ask('received 3'), 'one,two,three');
    assert.equal(await second.ask('marked 1'), 'LOW_WATERMARK');
    assert.equal(await first.ask('marked 0'), '');
    await send(0, 'other');
    assert.equal(await first.ask('marked 1'), 'LOW_WATERMARK');
    assert.equal(await second.ask('mark 16'), 'armed');
    await send(1, 'four');
    assert.equal(await second.ask('marked 2'), 'LOW_WATERMARK,LOW_WATERMARK');
    assert.equal(await first.ask('marked 0'), 'LOW_WATERMARK');
  });

  longIt('the host is killed: each registered consumer hears of a fatal event, once', async () => {
    const { first, second, sender, srqns, target, address, key } = await reach();
    await second.ask(`register ${target}`);
    const [host] = hostsOf(address);
    assert.ok(host !== undefined);
    process.kill(host, 'SIGKILL');
    for (const program of [first, second]) {
      assert.equal(await program.ask('told 1'), `${target} QP_FATAL`);
      assert.match(await program.ask(`query ${target}`), /has ended/);
    }
    assert.equal(await sender.ask(`send ${srqns[0]} late`), 'TRANSPORT');
    for (const program of [first, second]) {
      assert.equal(await program.ask('told 1'), `${target} QP_FATAL`);
      assert.equal(await program.ask('leave'), 'left');
      assert.equal(await program.ask(`domain ${key}`), 'domain');
      assert.ok(Number(await program.ask('queue')) > 0);
    }
  });

  it('two creators at once have one domain, which ends with its last opener', async () => {
    const [address, key] = [world.newAddress(), world.newKey()];
    const programs = await Promise.all([device(address), device(address)]);
    const answers = await Promise.all(programs.map((each) => each.ask(`domain ${key} exclusive`)));
    assert.deepEqual(answers.map((answer) => answer === 'domain').toSorted(), [false, true]);
    assert.match(
      answers.find((answer) => answer !== 'domain')!,
      /DAT_INVALID_STATE.*exists/,
    );
    const [one, two] = programs;
    for (const program of programs) {
      const mode = answers[programs.indexOf(program)] === 'domain' ? undefined : 'existing';
      if (mode !== undefined) assert.equal(await program.ask(`domain ${key} ${mode}`), 'domain');
      assert.ok(Number(await program.ask('queue')) > 0);
    }
    // The host that came too late ends by itself.
    while (hostsOf(address).length > 1) await paused(LOOK_MS);
    assert.equal(await one.ask('leave'), 'left');
    assert.equal(hostsOf(address).length, 1);
    await two.kill();
    while (hostsOf(address).length > 0) await paused(LOOK_MS);
    assert.match(await one.ask(`domain ${key} existing`), /DAT_INVALID_PARAMETER.*no XRC domain/);
  });

  longIt('what cannot be shared is refused in a sentence', async () => {
    const { first, address } = await reach();
    assert.match(await first.ask('ordinary'), /DAT_MODEL_NOT_SUPPORTED.*ordinary memory/);
    const other = await device(address);
    assert.match(await other.ask(`domain ${world.missingKey}`), /DAT_.*there is no such file/);
    // A key that names no file is the process's own, as before.
    assert.equal(await other.ask('domain own-key'), 'domain');
    assert.equal(hostsOf(address).length, 1);
  });
});
