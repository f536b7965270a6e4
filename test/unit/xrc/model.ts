/**
 * What the XRC module must do, said a second time and as simply as can be: a value per state, and
 * for each call the outcome and the next state. The search compares the module with it.
 */
export type Owner = 'consumer' | 'domain';

interface TargetModel {
  readonly owner: Owner;
  /** Names of consumers, sorted. */
  readonly registered: readonly string[];
}

interface ConsumerModel {
  readonly holds: number;
  readonly queues: number;
  readonly initiators: number;
}

export interface Model {
  readonly consumers: Readonly<Record<string, ConsumerModel>>;
  /** By age: the module's numbers go up, so the n-th living target is the same on both sides. */
  readonly targets: readonly TargetModel[];
}

/** One call of one consumer; `target` is an index among those that live. */
export interface Step {
  readonly who: string;
  readonly call:
    | 'open'
    | 'exclusive'
    | 'existing'
    | 'close'
    | 'exit'
    | 'queue'
    | 'initiator'
    | 'drop'
    | 'create'
    | 'create-owned'
    | 'register'
    | 'unregister'
    | 'event';
  readonly target: number;
}

/** `ok`, the code of an error, or who heard the event. */
export type Outcome = string;

const FREE: ConsumerModel = { holds: 0, queues: 0, initiators: 0 };

export function start(names: readonly string[]): Model {
  return { consumers: Object.fromEntries(names.map((name) => [name, FREE])), targets: [] };
}

const exists = (model: Model): boolean =>
  Object.values(model.consumers).some(({ holds }) => holds > 0);

function withConsumer(model: Model, who: string, change: Partial<ConsumerModel>): Model {
  const consumer = { ...(model.consumers[who] ?? FREE), ...change };
  return { ...model, consumers: { ...model.consumers, [who]: consumer } };
}

function withoutRegistration(targets: readonly TargetModel[], who: string): TargetModel[] {
  return targets
    .map((target) => ({ ...target, was: target.registered.includes(who) }))
    .map(({ was, owner, registered }) => ({
      was,
      owner,
      registered: registered.filter((name) => name !== who),
    }))
    .filter(({ was, owner, registered }) => !was || owner === 'domain' || registered.length > 0)
    .map(({ owner, registered }) => ({ owner, registered }));
}

/** The consumer has one hold less. */
function leave(model: Model, who: string): Model {
  const holds = (model.consumers[who] ?? FREE).holds - 1;
  const left = withConsumer(model, who, { holds });
  if (holds > 0) return left;
  const targets = exists(left) ? withoutRegistration(left.targets, who) : [];
  return { ...left, targets };
}

export function apply(model: Model, step: Step): { outcome: Outcome; next: Model } {
  const { who } = step;
  const own = model.consumers[who] ?? FREE;
  const refuse = (code: string): { outcome: Outcome; next: Model } => ({
    outcome: code,
    next: model,
  });
  const ok = (next: Model): { outcome: Outcome; next: Model } => ({ outcome: 'ok', next });
  const target = model.targets[step.target];
  const replace = (changed: TargetModel): Model => ({
    ...model,
    targets: model.targets.map((other) => (other === target ? changed : other)),
  });
  switch (step.call) {
    case 'exclusive':
      if (exists(model)) return refuse('EINVAL');
      return ok(withConsumer(model, who, { holds: own.holds + 1 }));
    case 'existing':
      if (!exists(model)) return refuse('ENODEV');
      return ok(withConsumer(model, who, { holds: own.holds + 1 }));
    case 'open':
      return ok(withConsumer(model, who, { holds: own.holds + 1 }));
    case 'close':
      if (own.holds === 0) return ok(model);
      // Objects are made through the first hold, which is closed last.
      if (own.holds === 1 && own.queues + own.initiators > 0) return refuse('EBUSY');
      return ok(leave(model, who));
    case 'exit': {
      let next = withConsumer(model, who, { queues: 0, initiators: 0 });
      for (let left = own.holds; left > 0; left--) next = leave(next, who);
      return ok(next);
    }
    case 'queue':
      return own.holds === 0 ? refuse('EINVAL') : ok(withConsumer(model, who, { queues: 1 }));
    case 'initiator':
      return own.holds === 0 ? refuse('EINVAL') : ok(withConsumer(model, who, { initiators: 1 }));
    case 'drop':
      return ok(withConsumer(model, who, { queues: 0, initiators: 0 }));
    case 'create':
    case 'create-owned': {
      if (own.holds === 0) return refuse('EINVAL');
      const created: TargetModel =
        step.call === 'create'
          ? { owner: 'consumer', registered: [who] }
          : { owner: 'domain', registered: [] };
      return ok({ ...model, targets: [...model.targets, created] });
    }
    case 'register':
      if (own.holds === 0 || !target) return refuse('EINVAL');
      return ok(
        replace({ ...target, registered: [...new Set([...target.registered, who])].sort() }),
      );
    case 'unregister': {
      if (own.holds === 0 || target?.registered.includes(who) !== true) return refuse('EINVAL');
      const registered = target.registered.filter((name) => name !== who);
      if (registered.length === 0 && target.owner === 'consumer') {
        return ok({ ...model, targets: model.targets.filter((other) => other !== target) });
      }
      return ok(replace({ ...target, registered }));
    }
    case 'event':
      if (!target) return refuse('EINVAL');
      return { outcome: `heard by ${target.registered.join('+') || 'the log'}`, next: model };
  }
}
