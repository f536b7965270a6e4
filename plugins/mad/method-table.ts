/**
 * Finds the agent for a request, by class version, class, method, and OUI for vendor range 2 (IBTA
 * 13.4.2; ib_mad's registration rules). One method has one agent.
 */
import {
  checkValue,
  checkValues,
  integer,
  isInteger,
  kindOf,
  type Kind,
} from '../../core/spi/checks/index.js';
import { einval } from '../../core/spi/errors/einval.js';
import { type MadAgentOptions, SpiError } from '../../core/spi/index.js';
import { MadClass, isRmppClass, isVendorRange2 } from '../../core/spi/modules/mad-header.js';

const SMI_CLASSES: readonly number[] = [MadClass.SUBN_LID, MadClass.SUBN_DIRECTED_ROUTE];
const MAX_CLASS_VERSION = 0x82;
const METHODS = 128;
const MAX_OUIS_PER_CLASS = 8;
const RMPP_CLASSES = '0x03, 0x06, 0x10, 0x12, 0x30 to 0x4f';
/** Methods of requests. Responses need no registration: they are matched by transaction id. */
const METHOD = integer(0, METHODS - 1);
const OUI: Kind = integer(1, 0xffffff);
const NO_OUI: Kind = kindOf(
  'left out: only classes 0x30 to 0x4f have one',
  (oui) => oui === undefined,
);
const AGENT = {
  managementClass: kindOf<number>(
    `an integer from 1 to 255 without ${SMI_CLASSES.join(', ')}`,
    (value) => isInteger(value, 1, 255) && !SMI_CLASSES.includes(value),
  ),
  classVersion: integer(0, MAX_CLASS_VERSION),
};

export class MethodTable<Owner> {
  /** Owners, keyed by class version and class, then OUI (0 outside vendor range 2), then method. */
  private readonly classes = new Map<number, Map<number, Map<number, Owner>>>();

  /** @throws SpiError('EINVAL'): options that `add` would refuse */
  check(options: MadAgentOptions): void {
    checkOptions(options);
    const ouis = this.classes.get(classKey(options));
    const methods = ouis?.get(options.oui ?? 0);
    const taken = options.methods.find((method) => methods?.has(method));
    if (taken !== undefined) {
      throw invalid(`method ${hex(taken)} of class ${describe(options)} has an agent already`);
    }
    if (options.methods.length > 0 && !methods && ouis?.size === MAX_OUIS_PER_CLASS) {
      throw invalid(
        `class ${describe(options)}: ${MAX_OUIS_PER_CLASS} OUIs are registered already`,
      );
    }
  }

  /** Adds an owner. @throws SpiError('EINVAL'): then nothing is added */
  add(options: MadAgentOptions, owner: Owner): void {
    this.check(options);
    if (options.methods.length === 0) return;
    const oui = options.oui ?? 0;
    const ouis = this.classes.get(classKey(options)) ?? new Map<number, Map<number, Owner>>();
    const methods = ouis.get(oui) ?? new Map<number, Owner>();
    for (const method of options.methods) methods.set(method, owner);
    ouis.set(oui, methods);
    this.classes.set(classKey(options), ouis);
  }

  remove(options: MadAgentOptions): void {
    const key = classKey(options);
    const oui = options.oui ?? 0;
    const ouis = this.classes.get(key);
    const methods = ouis?.get(oui);
    if (!ouis || !methods) return;
    for (const method of options.methods) methods.delete(method);
    if (methods.size === 0) ouis.delete(oui);
    if (ouis.size === 0) this.classes.delete(key);
  }

  find(
    classVersion: number,
    managementClass: number,
    oui: number,
    method: number,
  ): Owner | undefined {
    const ouis = this.classes.get((classVersion << 8) | managementClass);
    return ouis?.get(isVendorRange2(managementClass) ? oui : 0)?.get(method);
  }
}

function classKey({ classVersion, managementClass }: MadAgentOptions): number {
  return (classVersion << 8) | managementClass;
}

function checkOptions(options: MadAgentOptions): void {
  checkValues(options, AGENT, einval);
  const { managementClass, methods, oui, rmpp } = options;
  const allowed = isVendorRange2(managementClass) ? OUI : NO_OUI;
  checkValue('oui', oui, allowed, einval);
  if (rmpp === true && !isRmppClass(managementClass)) {
    throw einval(
      'rmpp',
      rmpp,
      `false: class ${hex(managementClass)} has none (${RMPP_CLASSES} do)`,
    );
  }
  for (const method of methods) checkValue('a method', method, METHOD, einval);
}

function describe({ managementClass, classVersion, oui }: MadAgentOptions): string {
  const suffix = oui === undefined ? '' : ` of OUI ${hex(oui)}`;
  return `${hex(managementClass)} version ${classVersion}${suffix}`;
}

function hex(value: number): string {
  return `0x${value.toString(16)}`;
}

function invalid(message: string): SpiError {
  return new SpiError('EINVAL', message);
}
