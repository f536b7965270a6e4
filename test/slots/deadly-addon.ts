/**
 * The seam where a program of these tests ends itself: at one of the messages that it sends to, or
 * takes from, those that share its address, or at one of its calls of the system for the group.
 * It is killed as by `kill -9`: nothing of its code runs after that.
 */
import assert from 'node:assert/strict';
import { writeSync } from 'node:fs';
import type { UnixListener, UnixSocket } from '../../providers/host/index.js';
import { parseMessage } from '../../providers/shared-address/messages.js';
import { loadNativeAddon, type NativeAddon } from '../../providers/softroce/port/native-addon.js';

/** What a process does for its group, each a step at which it can be killed. */
export type Step =
  | `${'sends' | 'takes'} ${MessageKind}`
  | 'connects'
  | 'accepts'
  | 'listens'
  | 'locks'
  | (typeof CALLS)[keyof typeof CALLS];

type MessageKind = NonNullable<ReturnType<typeof parseMessage>>['kind'];

/** Of the addon, as steps. */
const CALLS = {
  bindGroupSocket: 'binds',
  attachSteering: 'steers',
  dropAll: 'silences',
  takeAll: 'wakes',
} as const;

/** In which step a process is killed; what it has taken before it has looked at it. */
export interface Death {
  /** `any` counts all steps. */
  readonly step: Step | 'any';
  /** From 1 on. */
  readonly nth: number;
  readonly when: 'before' | 'after';
}

/** Of the broker; that of the lock has more behind the digits. */
const BROKER_NAME = /^dapl-shared\/[0-9a-f]{32}$/;
const LOCK_NAME = /^dapl-shared\/[0-9a-f]{32}\/lock$/;
/** After so long without being asked to, a program that is slow to take the name is so again. */
const FORGOTTEN_MS = 5_000;

export class DeadlyAddon {
  readonly addon: NativeAddon;
  /** As this process has created or mapped it last. */
  table: ArrayBuffer | undefined;
  private readonly death: Death | undefined;
  /** Has the broker's name. */
  isBroker = false;
  private steps = 0;
  private slowMs = 0;
  private askedMs = { first: 0, last: -Infinity };

  constructor(death?: Death) {
    const addon = loadNativeAddon();
    assert.ok(addon, 'the addon is not there');
    this.addon = addon;
    this.death = death;
    this.tapNames();
    for (const [name, step] of Object.entries(CALLS) as [keyof typeof CALLS, Step][]) {
      const call = addon[name].bind(addon) as (...values: unknown[]) => unknown;
      Object.assign(addon, {
        [name]: (...values: unknown[]) => this.at(step, () => call(...values)),
      });
    }
    for (const name of ['createSharedTable', 'mapSharedTable'] as const) {
      const call = addon[name].bind(addon) as (...values: unknown[]) => unknown;
      Object.assign(addon, {
        [name]: (...values: unknown[]) => {
          const made = call(...values) as ArrayBuffer | { memory: ArrayBuffer };
          this.table = made instanceof ArrayBuffer ? made : made.memory;
          return made;
        },
      });
    }
  }

  /** Others take the broker's name before this process does, where there are others. */
  beSlow(forMs: number): void {
    this.slowMs = forMs;
  }

  private tapNames(): void {
    const { addon } = this;
    const connect = addon.connectUnix.bind(addon);
    const listen = addon.listenUnix.bind(addon);
    addon.connectUnix = (name): UnixSocket => {
      if (!BROKER_NAME.test(name)) return connect(name);
      return this.at('connects', () => this.tapped(connect(name)));
    };
    addon.listenUnix = (name, backlog): UnixListener => {
      if (LOCK_NAME.test(name)) return this.at('locks', () => listen(name, backlog));
      if (!BROKER_NAME.test(name)) return listen(name, backlog);
      if (this.isSlow()) throw Object.assign(new Error('slow'), { code: 'EADDRINUSE' });
      return this.at('listens', () => this.tappedListener(listen(name, backlog)));
    };
  }

  private isSlow(): boolean {
    const now = performance.now();
    const { first, last } = this.askedMs;
    this.askedMs = { first: now - last > FORGOTTEN_MS ? now : first, last: now };
    return now - this.askedMs.first < this.slowMs;
  }

  private tappedListener(listener: UnixListener): UnixListener {
    this.isBroker = true;
    const accept = listener.accept.bind(listener);
    const close = listener.close.bind(listener);
    return Object.assign(listener, {
      accept: () => {
        const caller = accept();
        return caller && this.at('accepts', () => this.tapped(caller));
      },
      close: () => {
        this.isBroker = false;
        close();
      },
    });
  }

  private tapped(socket: UnixSocket): UnixSocket {
    const send = socket.send.bind(socket);
    const take = socket.take.bind(socket);
    return Object.assign(socket, {
      send: (bytes: Uint8Array, descriptors: readonly number[]) =>
        this.at(`sends ${kindOf(bytes, descriptors)}`, () => send(bytes, descriptors)),
      take: () => {
        const came = take();
        if (came) this.at(`takes ${kindOf(came.bytes, came.descriptors)}`, () => undefined);
        return came;
      },
    });
  }

  private at<T>(step: Step, body: () => T): T {
    const { death } = this;
    const isCounted = death !== undefined && (death.step === 'any' || death.step === step);
    const isLast = isCounted && ++this.steps === death.nth;
    if (isLast && death.when === 'before') this.die(step, 'before');
    try {
      return body();
    } finally {
      // Also after a step that fails, such as a name that another process has.
      if (isLast) this.die(step, 'after');
    }
  }

  private die(step: Step, when: Death['when']): void {
    writeSync(1, `killed ${when} it ${step}, ${this.isBroker ? 'broker' : 'member'}\n`);
    process.kill(process.pid, 'SIGKILL');
  }
}

function kindOf(bytes: Uint8Array, descriptors: readonly number[]): MessageKind {
  const message = parseMessage(bytes, descriptors.length);
  assert.ok(message, 'a message of the group');
  return message.kind;
}

/** As arguments of a program: `sends_HELLO 1 before`. */
export function deathOf(words: readonly string[]): Death {
  const [step = '', nth, when] = words;
  return {
    step: step.replace('_', ' ') as Death['step'],
    nth: Number(nth),
    when: when as Death['when'],
  };
}

export function wordsOf({ step, nth, when }: Death): string {
  return `${step.replace(' ', '_')} ${nth} ${when}`;
}
