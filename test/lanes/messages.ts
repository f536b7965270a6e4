/** What the process of a room reports to the program that started it. */
export type Report = FileReport | EndReport;

/** A file of tests is done. */
export interface FileReport {
  readonly kind: 'file';
  /** The output of tsc, an absolute path. */
  readonly file: string;
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  readonly milliseconds: number;
}

/** All files are done. */
export interface EndReport {
  readonly kind: 'end';
  readonly failures: readonly Failure[];
}

/** As `Mocha.reporters.Base.list` prints it. */
export interface Failure {
  readonly titlePath: readonly string[];
  readonly message: string;
  readonly stack: string;
  /** Texts to compare, where the assertion has them. */
  readonly actual?: string;
  readonly expected?: string;
}
