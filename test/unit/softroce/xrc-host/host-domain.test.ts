/** The rules of a hosted XRC domain: who holds what, and what ends with whom. */
import assert from 'node:assert/strict';
import { type CmEvent, type HandedRequest, QpState, SpiError } from '../../../../core/spi/index.js';
import {
  HostDomain,
  type HostedObject,
  type HostObjects,
  type Opener,
} from '../../../../providers/softroce/xrc-host/host-domain.js';
import type { Note, Request } from '../../../../providers/softroce/xrc-host/messages.js';

/** Objects that only say what becomes of them. */
class Objects implements HostObjects {
  readonly log: string[] = [];
  readonly events = new Map<number, (event: number) => void>();
  readonly connections = new Map<number, (event: CmEvent) => void>();
  state: QpState = QpState.RTR;
  private qpn = 100;
  private spaces = 0;

  createSpace(): ReturnType<HostObjects['createSpace']> {
    const space = ++this.spaces;
    const { log } = this;
    const end = (what: string): HostedObject => ({ destroy: () => log.push(`-${what}`) });
    return {
      ...end(`space ${space}`),
      addRegion: ({ key }) => end(`region ${key}`),
      addQueue: ({ srqn }, descriptor) => {
        log.push(`+queue ${srqn} of ${descriptor}`);
        return {
          ...end(`queue ${srqn}`),
          look: () => log.push(`look ${srqn}`),
          setLimit: (limit) => log.push(`limit ${srqn} ${limit}`),
          fail: () => log.push(`fail ${srqn}`),
        };
      },
    };
  }

  repeat({ data }: HandedRequest): void {
    this.log.push(`repeat ${data.length}`);
  }

  createTarget(onEvent: (event: never) => void): ReturnType<HostObjects['createTarget']> {
    const qpn = ++this.qpn;
    this.events.set(qpn, onEvent as (event: number) => void);
    return {
      qpn,
      modify: () => this.log.push(`modify ${qpn}`),
      query: () => ({ state: this.state }),
      accept: ({ source }, { privateData }, onEvent) => {
        this.log.push(`accept ${qpn} from ${source.udpPort}: ${privateData.length}`);
        this.connections.set(qpn, onEvent);
      },
      destroy: () => this.log.push(`-target ${qpn}`),
    };
  }
}

const textOf = (value: string | number | CmEvent): string =>
  typeof value === 'object' ? value.type : String(value);

class Stage {
  readonly objects = new Objects();
  readonly domain = new HostDomain(this.objects);
  readonly told: string[] = [];

  open(name: string, mode: 'create' | 'exclusive' | 'existing' = 'create'): Opener {
    const opener = this.domain.enter((note: Note) =>
      this.told.push(`${name}: ${Object.values(note).map(textOf).join(' ')}`),
    );
    this.ask(opener, { op: 'open', mode });
    return opener;
  }

  ask(opener: Opener, request: Request, ...descriptors: readonly number[]): unknown {
    return this.domain.request(opener, request, descriptors);
  }

  target(opener: Opener, owner: 'consumer' | 'domain' = 'consumer'): number {
    return this.ask(opener, { op: 'createTarget', owner }) as number;
  }
}

const EVENT = 3;

describe('softroce: the rules of a hosted XRC domain', () => {
  it('opens by the mode: only new ones exclusively, only existing ones otherwise', () => {
    const stage = new Stage();
    assert.throws(
      () => stage.open('none', 'existing'),
      (error) => error instanceof SpiError && error.code === 'ENODEV',
    );
    stage.open('first', 'exclusive');
    assert.throws(
      () => stage.open('late', 'exclusive'),
      (error) => error instanceof SpiError && error.code === 'EINVAL',
    );
    stage.open('second', 'existing');
  });

  it('does nothing for a caller that has not opened it', () => {
    const { domain } = new Stage();
    const caller = domain.enter(() => undefined);
    assert.throws(
      () => domain.request(caller, { op: 'createTarget', owner: 'consumer' }, []),
      /before open/,
    );
    domain.leave(caller);
    assert.equal(domain.size, 0);
  });

  it('ends a target with its last hold, of whichever opener', () => {
    const stage = new Stage();
    const [one, two] = [stage.open('one'), stage.open('two')];
    const qpn = stage.target(one);
    stage.ask(two, { op: 'hold', qpn });
    stage.ask(two, { op: 'hold', qpn });
    stage.ask(one, { op: 'release', qpn });
    stage.ask(two, { op: 'release', qpn });
    assert.deepEqual(stage.objects.log, []);
    // What one does not hold it cannot take from another.
    stage.ask(one, { op: 'release', qpn });
    assert.deepEqual(stage.objects.log, []);
    stage.ask(two, { op: 'release', qpn });
    assert.deepEqual(stage.objects.log, [`-target ${qpn}`]);
    assert.throws(() => stage.ask(one, { op: 'query', qpn }), /no target/);
  });

  it('an opener that goes is unregistered everywhere, and takes what is its own along', () => {
    const stage = new Stage();
    const [one, two] = [stage.open('one'), stage.open('two')];
    const [kept, own] = [stage.target(one), stage.target(one)];
    stage.ask(two, { op: 'hold', qpn: kept });
    stage.ask(one, { op: 'addQueue', zone: 1, srqn: 7, maxWr: 1, maxSge: 1 }, 33);
    stage.domain.leave(one);
    stage.domain.leave(one);
    assert.deepEqual(stage.objects.log, [
      '+queue 7 of 33',
      `-target ${own}`,
      '-queue 7',
      '-space 1',
    ]);
    assert.deepEqual(stage.ask(two, { op: 'query', qpn: kept }), { state: 2 });
    stage.domain.leave(two);
    assert.ok(stage.objects.log.includes(`-target ${kept}`));
  });

  it('a target that the domain owns ends with the last opener, whichever made it', () => {
    const stage = new Stage();
    const [one, two] = [stage.open('one'), stage.open('two')];
    const qpn = stage.target(one, 'domain');
    stage.ask(two, { op: 'hold', qpn });
    stage.ask(two, { op: 'release', qpn });
    stage.domain.leave(one);
    assert.deepEqual(stage.objects.log, []);
    assert.deepEqual(stage.ask(two, { op: 'query', qpn }), { state: QpState.RTR });
    // One that has only connected keeps nothing.
    const caller = stage.domain.enter(() => undefined);
    stage.domain.leave(two);
    assert.deepEqual(stage.objects.log, [`-target ${qpn}`]);
    stage.domain.leave(caller);
  });

  it('but one that has not become ready ends with the opener that was making it', () => {
    const stage = new Stage();
    const [one, two] = [stage.open('one'), stage.open('two')];
    stage.objects.state = QpState.INIT;
    const [given, lost] = [stage.target(one, 'domain'), stage.target(one, 'domain')];
    stage.ask(one, { op: 'release', qpn: given });
    assert.deepEqual(stage.objects.log, [`-target ${given}`]);
    stage.domain.leave(one);
    assert.throws(() => stage.ask(two, { op: 'query', qpn: lost }), /no target/);
  });

  it('accepts a request for an opener, and tells that one what becomes of the connection', () => {
    const stage = new Stage();
    const [one, two] = [stage.open('one'), stage.open('two')];
    const qpn = stage.target(one);
    stage.ask(two, { op: 'hold', qpn });
    const handed = {
      mad: new Uint8Array(256),
      gid: new Uint8Array(16),
      localGidIndex: 0,
      udpPort: 4791,
    };
    const answer = {
      privateData: new Uint8Array(5),
      responderResources: 1,
      initiatorDepth: 0,
      retryCount: 7,
      rnrRetryCount: 7,
      minRnrTimer: 12,
      accessFlags: 0,
    };
    stage.ask(two, { op: 'accept', qpn, ...handed, ...answer });
    stage.ask(one, { op: 'repeat', ...handed });
    assert.deepEqual(stage.objects.log, [`accept ${qpn} from 4791: 5`, 'repeat 256']);
    stage.objects.connections.get(qpn)!({ type: 'disconnected', byPeer: true });
    assert.deepEqual(stage.told, [`two: connectionEvent ${qpn} disconnected`]);
    assert.throws(
      () => stage.ask(one, { op: 'accept', qpn: 7, ...handed, ...answer }),
      /no target 7/,
    );
  });

  it('tells events to each opener that holds the target, once, however often it holds it', () => {
    const stage = new Stage();
    const [one, two] = [stage.open('one'), stage.open('two')];
    stage.open('three');
    const qpn = stage.target(one);
    stage.ask(two, { op: 'hold', qpn });
    stage.ask(two, { op: 'hold', qpn });
    stage.objects.events.get(qpn)!(EVENT);
    assert.deepEqual(stage.told, [
      `one: targetEvent ${qpn} ${EVENT}`,
      `two: targetEvent ${qpn} ${EVENT}`,
    ]);
  });

  it('a region without the memory that it is in is refused', () => {
    const stage = new Stage();
    const one = stage.open('one');
    const memory = { memoryBytes: 4096, offset: 0, lengthBytes: 64 };
    const region: Request = { op: 'addRegion', zone: 1, key: 9, access: 0, iova: 0n, ...memory };
    assert.throws(() => stage.ask(one, region), /without its memory/);
    stage.ask(one, region, 5);
    stage.domain.leave(one);
    assert.deepEqual(stage.objects.log, ['-region 9', '-space 1']);
  });

  it('each zone of an opener is one of its own, for as long as something is in it', () => {
    const stage = new Stage();
    const one = stage.open('one');
    const queue = { op: 'addQueue', maxWr: 1, maxSge: 1 } as const;
    stage.ask(one, { ...queue, zone: 1, srqn: 7 }, 5);
    stage.ask(one, { ...queue, zone: 2, srqn: 8 }, 5);
    stage.ask(one, { ...queue, zone: 2, srqn: 9 }, 5);
    stage.objects.log.length = 0;
    for (const srqn of [8, 7, 9]) stage.ask(one, { op: 'removeQueue', srqn });
    const expected = ['-queue 8', '-queue 7', '-space 1', '-queue 9', '-space 2'];
    assert.deepEqual(stage.objects.log, expected);
    stage.ask(one, { ...queue, zone: 2, srqn: 8 }, 5);
    stage.domain.leave(one);
    assert.deepEqual(stage.objects.log.slice(-2), ['-queue 8', '-space 3']);
  });

  it('a queue is its opener’s: without its memory, or of another, it is refused', () => {
    const stage = new Stage();
    const [one, two] = [stage.open('one'), stage.open('two')];
    const queue: Request = { op: 'addQueue', zone: 1, srqn: 7, maxWr: 1, maxSge: 1 };
    assert.throws(() => stage.ask(one, queue), /without its memory/);
    stage.ask(one, queue, 5);
    assert.throws(() => stage.ask(two, { op: 'limit', srqn: 7, limit: 1 }), /no receive queue 7/);
    stage.domain.look(one);
    stage.domain.look(two);
    stage.ask(one, { op: 'removeQueue', srqn: 7 });
    assert.deepEqual(stage.objects.log, ['+queue 7 of 5', 'look 7', '-queue 7', '-space 1']);
  });
});
