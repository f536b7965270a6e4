/**
 * Every order of calls of several consumers, searched to a fixpoint: from each state that the model
 * can be in, each call is made on a fresh module brought there, and outcome and what lives are
 * compared.
 */
import assert from 'node:assert/strict';
import {
  type CompletionQueue,
  type ProtectionDomain,
  SpiError,
  type XrcDomain,
} from '../../../core/spi/index.js';
import { FATAL, type XrcConsumerStub, XrcWorld } from '../../support/xrc-world.js';
import { type Model, type Outcome, type Step, apply, start } from './model.js';

const pd = {} as ProtectionDomain;
const cq = {} as CompletionQueue;
const onEvent = (): void => undefined;
const INITIATOR = {
  pd,
  sendCq: cq,
  maxSendWr: 1,
  maxSendSge: 1,
  maxInlineBytes: 0,
  context: 1,
  onEvent,
};

interface Actor {
  readonly stub: XrcConsumerStub;
  readonly holds: XrcDomain[];
  queue: { destroy(): void } | undefined;
  initiator: { destroy(): void } | undefined;
}

/** The module under test, driven by the model's steps. */
class Subject {
  private readonly world = new XrcWorld();
  private readonly actors: Readonly<Record<string, Actor>>;
  /** A hold that was given up: what a consumer without one calls. */
  private readonly stale: XrcDomain;

  constructor(names: readonly string[]) {
    this.actors = Object.fromEntries(
      names.map((name) => [
        name,
        {
          stub: this.world.consumer(name),
          holds: [],
          queue: undefined,
          initiator: undefined,
        } satisfies Actor as Actor,
      ]),
    );
    this.stale = this.world.consumer('stale').open('other');
    this.stale.close();
  }

  run(step: Step): Outcome {
    try {
      return this.call(step) ?? 'ok';
    } catch (error) {
      if (error instanceof SpiError) return error.code;
      throw error;
    }
  }

  /** Everything that can be seen of the state, from outside. */
  check(model: Model, path: string): void {
    const { fake } = this.world;
    const sum = (pick: (c: Model['consumers'][string]) => number): number =>
      Object.values(model.consumers).reduce((total, consumer) => total + pick(consumer), 0);
    const initiators = sum((c) => c.initiators);
    const seen = {
      domains: fake.count('domain'),
      queues: fake.count('srq'),
      queuePairs: fake.count('qp'),
    };
    const holds = sum((c) => c.holds);
    assert.deepEqual(
      seen,
      {
        domains: holds > 0 ? 1 : 0,
        queues: sum((c) => c.queues),
        queuePairs: initiators + model.targets.length,
      },
      path,
    );
    if (holds === 0) assert.equal(fake.living.size, 0, path);
    for (const qp of fake.queuePairs) assert.ok(qp.destroyed <= 1, `${path}: destroyed twice`);
  }

  private call({ who, call, target }: Step): Outcome | undefined {
    const actor = this.actors[who]!;
    const { stub, holds } = actor;
    stub.domain = holds[0] ?? this.stale;
    const qpn = this.targets[target] ?? 0xbad;
    switch (call) {
      case 'open':
        holds.push(stub.open('k', 'create'));
        return undefined;
      case 'exclusive':
      case 'existing':
        holds.push(stub.open('k', call));
        return undefined;
      case 'close':
        holds.at(-1)?.close();
        holds.pop();
        return undefined;
      case 'exit':
        stub.exit();
        holds.length = 0;
        actor.queue = actor.initiator = undefined;
        return undefined;
      case 'queue':
        actor.queue ??= stub.domain.createSharedReceiveQueue({
          pd,
          cq,
          maxWr: 1,
          maxSge: 1,
          onEvent,
        });
        return undefined;
      case 'initiator':
        actor.initiator ??= stub.domain.createInitiator(INITIATOR);
        return undefined;
      case 'drop':
        actor.queue?.destroy();
        actor.initiator?.destroy();
        actor.queue = actor.initiator = undefined;
        return undefined;
      case 'create':
        stub.create();
        return undefined;
      case 'create-owned':
        stub.create('domain');
        return undefined;
      case 'register':
        stub.register(qpn);
        return undefined;
      case 'unregister':
        stub.unregister(qpn);
        return undefined;
      case 'event':
        return this.raise(qpn);
    }
  }

  private raise(qpn: number): Outcome {
    if (qpn === 0xbad) return 'EINVAL';
    const { log } = this.world;
    for (const { stub } of Object.values(this.actors)) stub.events.length = 0;
    log.lines.length = 0;
    this.world.fail(qpn);
    const heard = Object.values(this.actors).flatMap(({ stub }) =>
      stub.events.map((event) => (event === `${qpn}:${FATAL}` ? stub.name : `not ${event}`)),
    );
    return `heard by ${heard.sort().join('+') || (log.lines.length === 1 ? 'the log' : 'nobody')}`;
  }

  private get targets(): readonly number[] {
    const hold = Object.values(this.actors).flatMap(({ holds }) => holds)[0];
    return hold?.targets ?? [];
  }
}

interface Bounds {
  readonly names: readonly string[];
  readonly calls: readonly Step['call'][];
  readonly maxHolds: number;
  readonly maxTargets: number;
}

function stepsFrom(model: Model, { names, calls, maxHolds, maxTargets }: Bounds): Step[] {
  const steps: Step[] = [];
  for (const who of names) {
    for (const call of calls) {
      const onTarget = call === 'register' || call === 'unregister' || call === 'event';
      // One index more than there are: what happens to a number that nobody has.
      const last = onTarget ? model.targets.length : 0;
      for (let target = 0; target <= last; target++) steps.push({ who, call, target });
    }
  }
  return steps.filter(({ who, call }) => {
    if (call.startsWith('create')) return model.targets.length < maxTargets;
    if (call === 'open' || call === 'existing' || call === 'exclusive') {
      return (model.consumers[who]?.holds ?? 0) < maxHolds;
    }
    return true;
  });
}

function search(bounds: Bounds): { states: number; steps: number } {
  const first = start(bounds.names);
  const paths = new Map<string, { model: Model; path: readonly Step[] }>();
  paths.set(JSON.stringify(first), { model: first, path: [] });
  let steps = 0;
  // A Map visits what is added while it is walked: until nothing new is found.
  for (const { model, path } of paths.values()) {
    for (const step of stepsFrom(model, bounds)) {
      const subject = new Subject(bounds.names);
      for (const before of path) subject.run(before);
      const { outcome, next } = apply(model, step);
      const text = [...path, step].map((s) => `${s.who}.${s.call}(${s.target})`).join(' ');
      assert.equal(subject.run(step), outcome, text);
      subject.check(next, text);
      steps++;
      const key = JSON.stringify(next);
      if (!paths.has(key)) paths.set(key, { model: next, path: [...path, step] });
    }
  }
  return { states: paths.size, steps };
}

describe('XRC module: all interleavings of its calls', () => {
  it('three consumers that create, register, unregister, close and exit', () => {
    const { states, steps } = search({
      names: ['a', 'b', 'c'],
      calls: ['open', 'close', 'exit', 'create', 'register', 'unregister', 'event'],
      maxHolds: 1,
      maxTargets: 2,
    });
    assert.ok(states > 80 && steps > 1500, `${states} states, ${steps} steps`);
  });

  it('targets of both owners, among two consumers', () => {
    const { states } = search({
      names: ['a', 'b'],
      calls: ['open', 'close', 'exit', 'create', 'create-owned', 'register', 'unregister', 'event'],
      maxHolds: 2,
      maxTargets: 2,
    });
    assert.ok(states > 100, `${states} states`);
  });

  it('queues and initiators of their own, and every way of opening', () => {
    const { states } = search({
      names: ['a', 'b'],
      calls: [
        'open',
        'exclusive',
        'existing',
        'close',
        'exit',
        'queue',
        'initiator',
        'drop',
        'create',
        'unregister',
      ],
      maxHolds: 2,
      maxTargets: 1,
    });
    assert.ok(states > 100, `${states} states`);
  });
});
