/** `dapl lab`: the simulator as a page, and captures in the same ladder. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join, resolve } from 'node:path';
import { Command } from 'commander';

const PAGE = 'docs/lab/index.html';
const PLACE = '<!--CAPTURE-->';
/** A larger capture makes a page that browsers open slowly. */
const MOST_BYTES = 64 * 2 ** 20;

export function labCommand(): Command {
  return new Command('lab')
    .summary('see connections and packets on a page')
    .description(
      'Without a file: prints the path of the page that plays scenarios on a simulated network. ' +
        'With a file: writes a page that shows it. The file is a capture (pcapng, as dapl trace ' +
        'and DAPL_PCAP write it) or a flight record in a text file. Pages need no server and no ' +
        'network.',
    )
    .option('-o, --output <file>', 'page to write; replaced if it exists (default: FILE.html)')
    .argument('[file]', 'a capture or a flight record')
    .addHelpText('after', '\nExample:\n  dapl lab out.pcapng && xdg-open out.pcapng.html')
    .action((file: string | undefined, { output }: { output?: string }) => {
      const page = pagePath();
      if (file === undefined) console.log(page);
      else write(page, resolve(file), resolve(output ?? `${basename(file)}.html`));
    });
}

/** @throws Error if the page was not built */
function pagePath(): string {
  const root = dirname(createRequire(import.meta.url).resolve('dapl/package.json'));
  const page = join(root, PAGE);
  if (!existsSync(page)) throw new Error(`${page} does not exist. Build it: npm run lab`);
  return page;
}

/** @throws Error for a file that cannot be shown */
function write(page: string, file: string, output: string): void {
  const bytes = readFileSync(file);
  if (bytes.length > MOST_BYTES) {
    const size = `${file} has ${bytes.length} bytes; a page shows at most ${MOST_BYTES}`;
    throw new Error(`${size}. Capture less, or filter it with Wireshark.`);
  }
  const name = basename(file).replace(/[&"<>]/g, '_');
  const data = `<script type="application/octet-stream" id="capture" data-name="${name}">`;
  const html = readFileSync(page, 'utf8');
  const capture = `${data}${bytes.toString('base64')}</script>`;
  writeFileSync(
    output,
    html.replace(PLACE, () => capture),
  );
  console.log(output);
}
