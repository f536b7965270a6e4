/** A peer whose CM messages of one kind have one field each changed to an extreme of it. */
import { decorate, over } from '../../core/spi/decorators/index.js';
import type { ConfiguredProvider } from '../../core/spi/plugin/define-plugin.js';
import type { MadAgent } from '../../core/spi/modules/mad.js';
import type { FieldValue } from '../../plugins/cm/wire/field-table.js';
import { CM_CODECS, type CmMessage, emitCmMad, parseCmMad } from '../../plugins/cm/wire/message.js';
import type { SeededRandom } from '../../providers/mock/index.js';

/** What is changed at once: one field, or two that are a choice together. */
export type Edit = Readonly<Record<string, FieldValue>>;

/** Messages whose fields a peer's consumer acts on. */
export const HOSTILE = ['REQ', 'REP', 'SIDR_REQ', 'SIDR_REP'] as const;
export type HostileName = (typeof HOSTILE)[number];

/** Nothing is sent to others than its peer, and what finds no listener or connection says less. */
const TRANSPORTS: readonly Edit[] = [0, 1, 2, 3].flatMap((transportServiceType) =>
  [0, 1, 7].map((extendedTransportType) => ({ transportServiceType, extendedTransportType })),
);

/** Both ends of each field, their neighbours, and a value between them. */
export function editsOf(name: HostileName, random: SeededRandom): Edit[] {
  const edits = Object.entries(CM_CODECS[name].layout).flatMap(([field, row]): Edit[] => {
    if (row.kind === 'bytes') {
      const filled = [0, 0xff].map((byte) => new Uint8Array(row.length).fill(byte));
      return [...filled, random.bytes(row.length)].map((value) => ({ [field]: value }));
    }
    if (row.kind === 'uint64') {
      const between = (BigInt(random.u32()) << 32n) | BigInt(random.u32());
      return [0n, 1n, between, 2n ** 64n - 1n].map((value) => ({ [field]: value }));
    }
    const { max } = row;
    const values = new Set([0, 1, max - 1, max, random.between(0, max)]);
    return [...values].map((value) => ({ [field]: value }));
  });
  return name === 'REQ' ? [...edits, ...TRANSPORTS] : edits;
}

/** Edits that wait for the messages that they are made to, one each; copies have the same one. */
export class Hostility {
  readonly made = new Map<number, Edit>();
  /** The newest that was made. */
  last: Edit | undefined;
  private readonly waiting: Edit[] = [];

  constructor(readonly name: HostileName) {}

  add(edit: Edit): void {
    this.waiting.push(edit);
  }

  provider(inner: ConfiguredProvider): ConfiguredProvider {
    return decorate(inner, {
      mad: (mad) => ({
        registerAgent: (options) => {
          const agent = mad.registerAgent(options);
          return over<MadAgent>(agent, {
            send: (send) => agent.send({ ...send, data: this.edited(send.data) }),
          });
        },
      }),
    });
  }

  private edited(data: Uint8Array): Uint8Array {
    const mad = parseCmMad(data);
    if (mad?.message.name !== this.name) return data;
    const { body } = mad.message;
    const id = 'requestId' in body ? body.requestId : body.localCommId;
    const edit = this.made.get(id) ?? this.waiting.shift();
    if (edit === undefined) return data;
    this.made.set(id, edit);
    this.last = edit;
    return emitCmMad({
      ...mad,
      message: { ...mad.message, body: { ...body, ...edit } } as CmMessage,
    });
  }
}
