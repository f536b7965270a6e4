/** The document of a report. It names no machine, person, address or serial number. */
import { arch, cpus, platform, release, totalmem } from 'node:os';
import type { InspectedDevice } from 'dapl/providers/verbs';
import type { BehaviourResult } from 'dapl/testing';
import type { Figure } from './figures.js';
import { maskText, maskWords, type Private } from './mask.js';
import type { Subject } from './subject.js';

const FORMAT = 'dapl-report-1';
const GIB = 2 ** 30;

export interface ReportDevice {
  readonly name: string;
  readonly nodeType: string;
  readonly firmware: string;
  readonly problem?: string;
  readonly vendor?: string;
  readonly part?: string;
  readonly hardwareVersion?: number;
  readonly capabilities: readonly string[];
  readonly limits: Readonly<Record<string, number>>;
  readonly ports: readonly {
    readonly state: string;
    readonly linkLayer: string;
    readonly rate: string;
    readonly activeMtuBytes?: number;
    /** Number of GIDs, by type. */
    readonly gidTypes: Readonly<Record<string, number>>;
  }[];
}

export interface ReportDocument {
  readonly format: typeof FORMAT;
  readonly dapl: string;
  readonly machine: Readonly<Record<string, string | number>>;
  readonly provider: string;
  /** The peer's device is the second; software providers have none. */
  readonly devices: readonly ReportDevice[];
  readonly conformance: {
    readonly capabilities: readonly string[];
    /** The part of the suite that was requested; absent: all of it. */
    readonly only?: string;
    readonly passed: number;
    readonly failed: readonly { readonly behaviour: string; readonly message: string }[];
    /** Number of behaviours that were left out, by the capability that is missing. */
    readonly notApplicable: Readonly<Record<string, number>>;
  };
  readonly figures: readonly Figure[];
  /** The reason that there are no figures. */
  readonly figuresProblem?: string;
}

export interface ReportParts {
  readonly version: string;
  readonly subject: Subject;
  readonly only?: string;
  readonly results: readonly BehaviourResult[];
  readonly figures: readonly Figure[];
  readonly figuresProblem?: string;
}

export function reportDocument(parts: ReportParts, words: readonly Private[]): ReportDocument {
  const { version, subject, results, figures, figuresProblem, only } = parts;
  const free = (text: string): string => maskText(text, words);
  const failed = results
    .filter(({ outcome }) => outcome === 'failed')
    .map(({ group, name, message = '' }) => ({
      behaviour: `${group}: ${name}`,
      message: free(message),
    }));
  const document: ReportDocument = {
    format: FORMAT,
    dapl: version,
    machine: machine(),
    provider: subject.provider,
    devices: subject.devices.map((device) => deviceOf(device, free)),
    conformance: {
      capabilities: [...subject.fixture.capabilities].sort(),
      ...(only !== undefined && { only }),
      passed: results.filter(({ outcome }) => outcome === 'passed').length,
      failed,
      notApplicable: countsOf(results.flatMap(({ lacks }) => lacks)),
    },
    figures,
    ...(figuresProblem !== undefined && { figuresProblem: free(figuresProblem) }),
  };
  // Other fields may contain a name, too, such as a company's kernel version.
  return JSON.parse(maskWords(JSON.stringify(document), words)) as ReportDocument;
}

function machine(): Record<string, string | number> {
  const processors = cpus();
  return {
    kernel: release(),
    platform: `${platform()} ${arch()}`,
    node: process.version,
    processors: processors.length,
    processor: processors[0]?.model.trim() ?? '',
    memoryGib: Math.round(totalmem() / GIB),
  };
}

function deviceOf(device: InspectedDevice, free: (text: string) => string): ReportDevice {
  const { name, nodeType, firmware, problem, attributes, capabilities = [] } = device;
  return {
    name,
    nodeType,
    firmware,
    ...(problem !== undefined && { problem: free(problem) }),
    ...(attributes && {
      vendor: `0x${attributes.vendorId.toString(16)}`,
      part: `0x${attributes.vendorPartId.toString(16)}`,
      hardwareVersion: attributes.hardwareVersion,
    }),
    capabilities,
    limits: limitsOf(attributes ?? {}),
    ports: device.ports.map(({ state, linkLayer, rate, gids }, i) => {
      const activeMtuBytes = device.activeMtuBytes?.[i];
      return {
        state,
        linkLayer,
        rate,
        ...(activeMtuBytes !== undefined && { activeMtuBytes }),
        gidTypes: countsOf(gids.map(({ type }) => type)),
      };
    }),
  };
}

/** The attributes that are limits: numbers, by their names. */
function limitsOf(attributes: object): Record<string, number> {
  const entries = Object.entries(attributes) as [string, unknown][];
  return Object.fromEntries(
    entries.filter((entry): entry is [string, number] => {
      const [name, value] = entry;
      return name.startsWith('max') && typeof value === 'number';
    }),
  );
}

function countsOf(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of [...names].sort()) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}
