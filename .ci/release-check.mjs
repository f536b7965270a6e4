// Refuses to publish what is not ready. `npm publish` and the release workflow run it.
//
//   node .ci/release-check.mjs [TAG]
//
// Only the owner of the project knows where it lives and who answers reports of vulnerabilities.
// package.json is the one place that says so; SECURITY.md and CODE_OF_CONDUCT.md point to it.

import { readFileSync } from 'node:fs';

/** What the owner fills in, by its path in package.json. */
const OWNER_FACTS = [['homepage'], ['repository', 'url'], ['bugs', 'url'], ['security', 'contact']];

/** @returns {string[]} a sentence for each reason not to publish */
export function reasonsNotToPublish(manifest, changelog, tag) {
  const reasons = OWNER_FACTS.filter((path) => !path.reduce((at, key) => at?.[key], manifest)).map(
    (path) => `package.json has no ${path.join('.')}: only the owner can fill it in.`,
  );
  const { version } = manifest;
  if (!changelog.includes(`\n## ${version}\n`) && !changelog.includes(`\n## ${version} `)) {
    reasons.push(`CHANGELOG.md has no section "## ${version}".`);
  }
  if (tag !== undefined && tag !== `v${version}`) {
    reasons.push(`The tag is ${tag}, but package.json has the version ${version}.`);
  }
  return reasons;
}

if (import.meta.filename === process.argv[1]) {
  const read = (name) => readFileSync(new URL(`../${name}`, import.meta.url), 'utf8');
  const manifest = JSON.parse(read('package.json'));
  const reasons = reasonsNotToPublish(manifest, read('CHANGELOG.md'), process.argv[2]);
  for (const reason of reasons) console.error(reason);
  if (reasons.length > 0) process.exitCode = 1;
}
