/**
 * The classes of events, so that each shows itself in one line, with names for its numbers. There
 * may be millions of completion events a second: each is one object, made in one step. Consumers
 * see the interfaces of event.ts.
 */
import { nameOf } from '../../spi/index.js';
import { type Facts, hex, showAs, Symbolic } from '../../spi/checks/index.js';
import { DatDto, DatDtoStatus } from './dto-status.js';
import {
  type DatagramEvent,
  type DatagramSource,
  type DatEvent,
  DatEventNumber,
  type DtoCompletionEvent,
  type PostedEvent,
  type RmrBindCompletionEvent,
  type SoftwareEvent,
  type XrcReceiveEvent,
} from './event.js';

export class DtoCompletion implements DtoCompletionEvent {
  readonly type = 'dto';
  declare immediate?: number;
  declare invalidatedRmrContext?: number;
  declare vendorError?: number;

  constructor(
    readonly number: DtoCompletionEvent['number'],
    readonly ep: DtoCompletionEvent['ep'],
    readonly cookie: number,
    readonly status: DatDtoStatus,
    readonly transferredLength: number,
    readonly operation: DatDto,
  ) {}
}

export class DatagramCompletion implements DatagramEvent {
  readonly type = 'datagram';
  readonly number = DatEventNumber.IB_DTO;
  declare source?: DatagramSource;
  declare immediate?: number;
  declare vendorError?: number;

  constructor(
    readonly ep: DatagramEvent['ep'],
    readonly cookie: number,
    readonly status: DatDtoStatus,
    readonly transferredLength: number,
    readonly operation: DatDto,
  ) {}
}

export class BindCompletion implements RmrBindCompletionEvent {
  readonly type = 'rmr-bind';
  readonly number = DatEventNumber.RMR_BIND_COMPLETION;

  constructor(
    readonly rmr: RmrBindCompletionEvent['rmr'],
    readonly ep: RmrBindCompletionEvent['ep'],
    readonly cookie: number,
    readonly status: DatDtoStatus,
  ) {}
}

export class XrcReceive implements XrcReceiveEvent {
  readonly type = 'xrc-receive';
  readonly number = DatEventNumber.XRC_RECEIVE;
  declare immediate?: number;
  declare invalidatedRmrContext?: number;
  declare vendorError?: number;

  constructor(
    readonly srq: XrcReceiveEvent['srq'],
    readonly targetQpn: number,
    readonly cookie: number,
    readonly status: DatDtoStatus,
    readonly transferredLength: number,
    readonly operation: DatDto,
  ) {}
}

export class SoftwarePost implements SoftwareEvent {
  readonly type = 'software';
  readonly number = DatEventNumber.SOFTWARE;

  constructor(readonly payload: unknown) {}
}

const POSTED = {};

/** A posted event (a connection, an error): the same object, without a copy. */
export function postedEvent<E extends PostedEvent>(event: E): E {
  return Object.setPrototypeOf(event, POSTED) as E;
}

/** Shows numbers by name or in hexadecimal, and long values by their length. */
const SHOWN: Readonly<Record<string, (value: never) => unknown>> = {
  status: (value: number) => new Symbolic(nameOf(DatDtoStatus, value)),
  operation: (value: number) => new Symbolic(nameOf(DatDto, value)),
  immediate: hex,
  invalidatedRmrContext: hex,
  flightRecord: (lines: readonly string[]) => new Symbolic(`${lines.length} lines`),
};

function eventFacts(event: object): Facts {
  const { type, number } = event as DatEvent;
  const all = Object.entries({ type, number, ...event }) as [string, never][];
  return Object.fromEntries(all.map(([name, value]) => [name, SHOWN[name]?.(value) ?? value]));
}

const eventName = (event: object): string => nameOf(DatEventNumber, (event as DatEvent).number);

const CLASSES: readonly { readonly prototype: object }[] = [
  DtoCompletion,
  DatagramCompletion,
  BindCompletion,
  XrcReceive,
  SoftwarePost,
  { prototype: POSTED },
];
for (const type of CLASSES) showAs(type, eventName, eventFacts);
