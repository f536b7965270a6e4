/**
 * What each entry of the package exports, as reports of API Extractor in docs/api (npm run api). A
 * change of the public API shows as a difference there; with --check one that is not written down
 * is a failure, as in CI.
 */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Extractor, ExtractorConfig, ExtractorLogLevel } from '@microsoft/api-extractor';
import { Command } from 'commander';
import { entriesWithTypes, ROOT } from '../package/packed.js';

const { check = false } = new Command('api')
  .option('--check', 'compare with docs/api, and change nothing')
  .parse()
  .opts<{ readonly check?: boolean }>();

const REPORTS = join(ROOT, 'docs/api');
const none = { logLevel: ExtractorLogLevel.None };
const work = mkdtempSync(join(tmpdir(), 'dapl-api-'));
process.once('exit', () => rmSync(work, { recursive: true }));

/** `dapl/flow/channel` is reported on in `flow-channel.api.md`. */
function reportName(entry: string): string {
  return `${entry.slice('dapl/'.length).replaceAll('/', '-') || 'dapl'}.api.md`;
}

function report(entry: string, types: string): string {
  const config = ExtractorConfig.prepare({
    configObject: {
      projectFolder: ROOT,
      mainEntryPointFilePath: join(ROOT, types),
      compiler: {
        overrideTsconfig: {
          compilerOptions: {
            module: 'nodenext',
            target: 'es2022',
            lib: ['es2023', 'esnext.disposable'],
            types: ['node'],
            strict: true,
            skipLibCheck: true,
          },
          files: [types],
        },
      },
      apiReport: {
        enabled: true,
        // Without what is @internal, as the declarations of the package are.
        reportVariants: ['public'],
        reportFileName: reportName(entry),
        reportFolder: work,
        reportTempFolder: join(work, 'temp'),
      },
      newlineKind: 'lf',
      docModel: { enabled: false },
      dtsRollup: { enabled: false },
      tsdocMetadata: { enabled: false },
      messages: {
        compilerMessageReporting: { default: none },
        extractorMessageReporting: { default: none },
        tsdocMessageReporting: { default: none },
      },
    },
    configObjectFullPath: undefined,
    packageJsonFullPath: join(ROOT, 'package.json'),
  });
  Extractor.invoke(config, {
    localBuild: true,
    messageCallback: (message) => {
      message.handled = true;
    },
  });
  return readFileSync(join(work, reportName(entry).replace('.api.md', '.public.api.md')), 'utf8');
}

const differing: string[] = [];
mkdirSync(REPORTS, { recursive: true });
const known = new Set(readdirSync(REPORTS));
for (const [entry, types] of entriesWithTypes()) {
  const name = reportName(entry);
  const text = report(entry, types);
  const written = known.delete(name) ? readFileSync(join(REPORTS, name), 'utf8') : undefined;
  if (text === written) continue;
  differing.push(name);
  if (!check) writeFileSync(join(REPORTS, name), text);
}
for (const name of known) {
  differing.push(name);
  if (!check) rmSync(join(REPORTS, name));
}
const names = differing.join(', ');
if (differing.length === 0) console.log('docs/api is as the entries are');
else if (!check) console.log(`written: ${names}`);
else {
  console.error(
    `docs/api does not say what these entries export: ${names}; "npm run api" writes it`,
  );
  process.exitCode = 1;
}
