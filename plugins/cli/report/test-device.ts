/** Runs `dapl test`: the conformance suite over a device, the figures, and the report of both. */
import { closeSync, openSync, unlinkSync, writeSync } from 'node:fs';
import { type BehaviourResult, runProvider } from 'dapl/testing';
import { type ReportDocument, reportDocument } from './document.js';
import { type Figure, type FigureOptions, measure } from './figures.js';
import { privateWords } from './mask.js';
import { type Subject, subjectOf, type SubjectOptions } from './subject.js';

export interface TestOptions extends SubjectOptions {
  /** Version of this package. */
  readonly version: string;
  /** Runs only behaviours whose `Group: behaviour` contains this; default: all. */
  readonly only?: string;
  readonly figureOptions?: FigureOptions;
  /** Receives each line of the progress. */
  readonly print: (line: string) => void;
}

/**
 * Tests the device.
 * @throws Error if the device cannot be opened; failures of behaviours are in the report
 */
export async function testDevice(options: TestOptions): Promise<ReportDocument> {
  const { version, only, print, figureOptions } = options;
  const subject = await subjectOf(options);
  const results = await runProvider(subject.fixture, {
    filter: (title) => only === undefined || title.includes(only),
    onResult: progress(print),
  });
  const measured = await figuresOf(subject, figureOptions);
  for (const figure of measured.figures) print(figureLine(figure));
  const { figures, problem } = measured;
  const parts = {
    version,
    subject,
    results,
    figures,
    ...(only !== undefined && { only }),
    ...(problem !== undefined && { figuresProblem: problem }),
  };
  return reportDocument(parts, privateWords());
}

/**
 * Runs `make` and writes its report to a new file, which only its owner can read. The file is
 * created before the suite runs, because that takes minutes.
 * @throws Error EEXIST: an existing file is never replaced
 */
export async function intoFile(
  file: string,
  make: () => Promise<ReportDocument>,
): Promise<ReportDocument> {
  const fd = openSync(file, 'wx', 0o600);
  try {
    const document = await make();
    writeSync(fd, `${JSON.stringify(document, null, 2)}\n`);
    return document;
  } catch (error) {
    unlinkSync(file);
    throw error;
  } finally {
    closeSync(fd);
  }
}

interface Measured {
  readonly figures: readonly Figure[];
  readonly problem?: string;
}

async function figuresOf(
  { fixture, isTimed }: Subject,
  options: FigureOptions | undefined,
): Promise<Measured> {
  if (!isTimed) return { figures: [], problem: 'its time is simulated' };
  const reads = fixture.capabilities.includes('rdma-read');
  const pair = await fixture.openPair();
  try {
    return { figures: await measure(pair, reads, options) };
  } catch (error) {
    return { figures: [], problem: error instanceof Error ? error.message : String(error) };
  } finally {
    await pair.close();
  }
}

/** Prints a line for each group as it begins, and one for each failure. */
function progress(print: (line: string) => void): (result: BehaviourResult) => void {
  let group = '';
  return ({ group: ofResult, outcome, name, message = '' }) => {
    if (ofResult !== group) print((group = ofResult));
    if (outcome === 'failed') print(`  FAILED ${name}: ${message}`);
  };
}

function figureLine(figure: Figure): string {
  const what = `${figure.test} ${figure.bytes} B`;
  return 'mibPerSecond' in figure
    ? `${what}: ${figure.mibPerSecond} MiB/s`
    : `${what}: ${figure.medianUs} µs, 99th percentile ${figure.p99Us} µs`;
}
