/**
 * Attributes for creating a target QP, as a table (openib-general, December 2007). One call takes
 * the QP from RESET through INIT to RTR. The table says for each attribute to which transition it
 * belongs, and whether it is required, has a default, is accepted without effect or is refused. A
 * target has no send queue.
 */
import {
  checkValue,
  ANYTHING,
  integer,
  kindOf,
  oneOf,
  show,
  type Kind,
} from '../../core/spi/checks/index.js';
import {
  type AddressVector,
  PATH_MTU_BYTES,
  PathMigrationState,
  QpState,
  type QueuePairAttributes,
  SpiError,
  type XrcTargetAttributes,
} from '../../core/spi/index.js';

/**
 * Capabilities of every target QP, whatever is requested: the numbers that drivers have used since
 * 2007.
 */
export const TARGET_CAPABILITIES = {
  maxSendWr: 1,
  maxReceiveWr: 0,
  maxSendSge: 1,
  maxReceiveSge: 0,
  maxInlineBytes: 0,
} as const;

/** Bits of `ibv_qp_attr_mask`, by the names of verbs. */
const MASK = {
  STATE: 1 << 0,
  CUR_STATE: 1 << 1,
  EN_SQD_ASYNC_NOTIFY: 1 << 2,
  ACCESS_FLAGS: 1 << 3,
  PKEY_INDEX: 1 << 4,
  PORT: 1 << 5,
  QKEY: 1 << 6,
  AV: 1 << 7,
  PATH_MTU: 1 << 8,
  TIMEOUT: 1 << 9,
  RETRY_CNT: 1 << 10,
  RNR_RETRY: 1 << 11,
  RQ_PSN: 1 << 12,
  MAX_QP_RD_ATOMIC: 1 << 13,
  ALT_PATH: 1 << 14,
  MIN_RNR_TIMER: 1 << 15,
  SQ_PSN: 1 << 16,
  MAX_DEST_RD_ATOMIC: 1 << 17,
  PATH_MIG_STATE: 1 << 18,
  DEST_QPN: 1 << 20,
} as const;

type Name = keyof XrcTargetAttributes;
type Use = 'needed' | 'default' | 'accepted' | 'refused';
interface Row {
  readonly use: Use;
  readonly transition: 'RESET->INIT' | 'INIT->RTR';
  readonly mask: keyof typeof MASK;
  readonly kind: Kind;
  readonly fallback?: number;
}

const VECTOR = kindOf<AddressVector>(
  'an address vector whose gid has 16 bytes',
  (value) => (value as Partial<AddressVector> | null)?.gid?.length === 16,
);
const PORT = integer(1, 255);

const BITS_24 = 0xffffff;
const BITS_32 = 0xffffffff;
const PATH_MTU = oneOf(PATH_MTU_BYTES.slice(1));
const MIGRATION_STATE = oneOf(Object.values(PathMigrationState));

const row = (
  use: Use,
  transition: Row['transition'],
  mask: Row['mask'],
  kind: Kind,
  fallback?: number,
): Row => ({ use, transition, mask, kind, ...(fallback !== undefined && { fallback }) });

const INIT = 'RESET->INIT';
const RTR = 'INIT->RTR';

// prettier-ignore
export const TARGET_ATTRIBUTES: Readonly<Record<Name, Row>> = {
  accessFlags:            row('needed',   INIT, 'ACCESS_FLAGS',         integer(0, BITS_32)),
  pkeyIndex:              row('needed',   INIT, 'PKEY_INDEX',           integer(0, 0xffff)),
  portNumber:             row('needed',   INIT, 'PORT',                 PORT),
  addressVector:          row('needed',   RTR,  'AV',                   VECTOR),
  pathMtuBytes:           row('needed',   RTR,  'PATH_MTU',             PATH_MTU),
  destinationQpn:         row('needed',   RTR,  'DEST_QPN',             integer(0, BITS_24)),
  receivePsn:             row('needed',   RTR,  'RQ_PSN',               integer(0, BITS_24)),
  minRnrTimer:            row('default',  RTR,  'MIN_RNR_TIMER',        integer(0, 31), 0),
  maxDestRdAtomic:        row('default',  RTR,  'MAX_DEST_RD_ATOMIC',   integer(0, 255), 0),
  timeout:                row('accepted', RTR,  'TIMEOUT',              integer(0, 31)),
  retryCount:             row('accepted', RTR,  'RETRY_CNT',            integer(0, 7)),
  rnrRetryCount:          row('accepted', RTR,  'RNR_RETRY',            integer(0, 7)),
  qkey:                   row('accepted', RTR,  'QKEY',                 integer(0, BITS_32)),
  pathMigrationState:     row('accepted', RTR,  'PATH_MIG_STATE',       MIGRATION_STATE),
  alternateAddressVector: row('accepted', RTR,  'ALT_PATH',             VECTOR),
  alternatePkeyIndex:     row('accepted', RTR,  'ALT_PATH',             integer(0, 0xffff)),
  alternatePortNumber:    row('accepted', RTR,  'ALT_PATH',             PORT),
  alternateTimeout:       row('accepted', RTR,  'ALT_PATH',             integer(0, 31)),
  state:                  row('refused',  RTR,  'STATE',                ANYTHING),
  currentState:           row('refused',  INIT, 'CUR_STATE',            ANYTHING),
  sendPsn:                row('refused',  RTR,  'SQ_PSN',               ANYTHING),
  maxRdAtomic:            row('refused',  RTR,  'MAX_QP_RD_ATOMIC',     ANYTHING),
  enableSqdAsyncNotify:   row('refused',  RTR,  'EN_SQD_ASYNC_NOTIFY',  ANYTHING),
};

const NAMES = Object.keys(TARGET_ATTRIBUTES) as Name[];
const REASON: Partial<Record<Name, string>> = {
  state: 'the call itself ends in RTR',
  currentState: 'the call begins in RESET',
};
const NO_SEND_QUEUE = 'a target has no send queue';

export interface TargetPlan {
  readonly init: QueuePairAttributes;
  readonly rtr: QueuePairAttributes;
}

/**
 * Plans the two transitions of a new target.
 * @throws SpiError('EINVAL') that names the attribute, the transition and the mask
 */
export function planTarget(given: XrcTargetAttributes): TargetPlan {
  const names = checkKnown(given);
  const mask = names.reduce((bits, name) => bits | MASK[TARGET_ATTRIBUTES[name].mask], 0);
  for (const name of names) {
    if (TARGET_ATTRIBUTES[name].use !== 'refused') continue;
    throw problem(name, `refused: ${REASON[name] ?? NO_SEND_QUEUE}`, mask);
  }
  for (const name of NAMES) {
    if (TARGET_ATTRIBUTES[name].use === 'needed' && given[name] === undefined) {
      throw problem(name, 'missing', mask);
    }
  }
  for (const name of names) {
    const { kind } = TARGET_ATTRIBUTES[name];
    checkValue(name, given[name], kind, (_name, value, expected) =>
      problem(name, `is ${show(value)}; it must be ${expected}`, mask),
    );
  }
  return {
    init: { ...pick(given, 'RESET->INIT'), state: QpState.INIT },
    rtr: { ...pick(given, 'INIT->RTR'), state: QpState.RTR },
  };
}

function checkKnown(given: XrcTargetAttributes): Name[] {
  const names = Object.keys(given).filter((name) => given[name as Name] !== undefined);
  const unknown = names.find((name) => !(name in TARGET_ATTRIBUTES));
  if (unknown === undefined) return names as Name[];
  throw new SpiError(
    'EINVAL',
    `XRC_TGT RESET->INIT->RTR: takes no ${unknown} (it has no bit in the mask)`,
  );
}

/** Picks the attributes of a transition; the others were checked and are dropped. */
function pick(given: XrcTargetAttributes, transition: Row['transition']): QueuePairAttributes {
  const picked: Record<string, unknown> = {};
  for (const name of NAMES) {
    const row = TARGET_ATTRIBUTES[name];
    if (row.transition !== transition || row.use === 'accepted' || row.use === 'refused') continue;
    picked[name] = given[name] ?? row.fallback;
  }
  return picked;
}

function problem(name: Name, what: string, given: number): SpiError {
  const { transition, mask } = TARGET_ATTRIBUTES[name];
  const bits = `IBV_QP_${mask} ${hex(MASK[mask])} in mask ${hex(given)}`;
  return new SpiError('EINVAL', `XRC_TGT ${transition}: ${name} ${what} (${bits})`);
}

function hex(bits: number): string {
  return `0x${bits.toString(16)}`;
}
