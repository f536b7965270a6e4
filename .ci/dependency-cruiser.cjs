// Which folder may import which: the layout of the design, as rules. test/architecture.long.test.ts
// plants one violation of each and expects it to be reported under its name.

const ours = '^(core|plugins|providers|samples|bench|test)/';
const sansIo = [
  '^(core|plugins/(mad|cm|xrc)|providers/(hca|shared-address)|samples/ulp/[^/]+/(wire|session))/',
  '^providers/softroce/xrc-host/(messages|host-domain|rings)\\.ts$',
];
const shipped = '^(core|plugins|providers)/';
const cli = '^plugins/cli/';
const selfReferring = '^plugins/(cli|easy|testing)/';

/** Built-in modules without I/O, clock or randomness. */
const pureBuiltins = '^(assert|async_hooks|buffer|diagnostics_channel|events|stream|util)(/|$)';

const forbid = (name, comment, from, to) => ({ name, severity: 'error', comment, from, to });
const npm = (name) => ({ path: `node_modules/${name}/` });

module.exports = {
  forbidden: [
    forbid(
      'core-knows-only-core',
      'core imports nothing of ours outside core',
      { path: '^core/' },
      { path: ours, pathNot: '^core/' },
    ),
    forbid(
      'spi-knows-only-the-spi',
      'core/spi is what everybody else stands on; it throws what consumers are thrown, and ' +
        '@inject writes metadata for core/di',
      { path: '^core/spi/' },
      {
        path: `${ours}|node_modules/`,
        pathNot: '^core/(spi|errors/dat)/|^node_modules/reflect-metadata/',
      },
    ),
    forbid(
      'dat-error-knows-nothing',
      'DatError and its codes are below all else but how values are shown',
      { path: '^core/errors/dat/' },
      { path: `${ours}|node_modules/`, pathNot: '^core/(errors/dat|spi/checks)/' },
    ),
    forbid(
      'events-know-no-objects',
      // An event holds the object that it is about, so its type names the class: as a type, which
      // is gone at run time. Go-to-definition then ends at the class.
      'DAT objects stand above the event dispatchers at run time; their types are known below',
      { path: '^core/(errors|evd|stream)/' },
      { path: '^core/(dat|registry)/', dependencyTypesNot: ['type-only'] },
    ),
    forbid(
      'core-knows-no-flow',
      'the front stands above DAT, and nothing of core on it',
      { path: '^core/', pathNot: '^core/flow/' },
      { path: '^core/flow/' },
    ),
    forbid(
      'flow-takes-an-open-adapter',
      'which adapter, and how it is opened, is for those above',
      { path: '^core/flow/' },
      { path: '^core/(di|registry|rx|stream)/' },
    ),
    forbid(
      'module-knows-only-the-spi',
      'a protocol module imports core/spi and itself',
      { path: '^plugins/(mad|cm|xrc)/' },
      { path: ours, pathNot: ['^core/spi/', '^plugins/$1/'] },
    ),
    forbid(
      'node-entry-knows-only-core',
      'the main entry adds files and imports to core; providers are imported by name',
      { path: '^plugins/node/' },
      { path: ours, pathNot: ['^core/', '^plugins/(node|pcap)/'] },
    ),
    forbid(
      'pcap-knows-only-the-spi',
      'a capture works for any provider',
      { path: '^plugins/pcap/' },
      { path: ours, pathNot: ['^core/spi/', '^plugins/pcap/'] },
    ),
    forbid(
      'wrappers-know-only-the-spi',
      'what stands over any provider knows none; packets are told apart by the faults of the HCA',
      { path: '^plugins/(faults|metrics|trace)/' },
      { path: ours, pathNot: ['^core/spi/', '^plugins/$1/', '^plugins/faults/grammar/'] },
    ),
    forbid(
      'hca-knows-only-the-spi',
      'the software HCA imports core/spi and itself',
      { path: '^providers/hca/' },
      { path: ours, pathNot: ['^core/spi/', '^providers/hca/'] },
    ),
    forbid(
      'slots-know-only-the-spi',
      'what processes of a shared device agree on imports core/spi and itself',
      { path: '^providers/shared-address/' },
      { path: ours, pathNot: ['^core/spi/', '^providers/shared-address/'] },
    ),
    forbid(
      'pacing-knows-only-itself',
      'what is done when is decided from facts alone',
      { path: '^providers/hca/pacing/' },
      { path: `${ours}|node_modules/`, pathNot: '^providers/hca/pacing/' },
    ),
    forbid(
      'host-knows-only-the-pacing',
      'the host helpers import core/spi and themselves; of the HCA, what the event loop goes by',
      { path: '^providers/host/' },
      {
        path: ours,
        pathNot: ['^core/spi/', '^providers/host/', '^providers/hca/pacing/index\\.ts$'],
      },
    ),
    forbid(
      'provider-knows-no-provider',
      'what two providers need lives in providers/hca, host, kit or shared-address',
      { path: '^providers/([^/]+)/' },
      { path: '^providers/', pathNot: '^providers/($1|hca|host|kit|shared-address)/' },
    ),
    forbid(
      'provider-knows-spi-and-modules',
      'a provider imports core/spi and the protocol modules',
      // The program that hosts XRC domains opens a device as any consumer does.
      { path: '^providers/', pathNot: '^providers/softroce/xrc-host-program\\.ts$' },
      {
        path: ours,
        pathNot: ['^core/spi/', '^plugins/(mad|cm|xrc|faults/grammar)/', '^providers/'],
      },
    ),
    forbid(
      'provider-knows-entries-of-modules',
      'of a module a provider sees its entry, and what it offers to providers',
      { path: '^providers/' },
      { path: '^plugins/', pathNot: '^plugins/([^/]+/(index|provider)\\.ts$|faults/grammar/)' },
    ),
    forbid(
      'samples-are-strangers',
      'samples, the CLI, dapl/easy and dapl/testing use the public entries, as a stranger would',
      { path: '^(samples|plugins/cli|plugins/easy|plugins/testing)/' },
      { path: ours, pathNot: '^$1/' },
    ),
    forbid(
      'ulp-wire-knows-only-the-wire',
      'codecs of an upper-layer protocol are of use without its sessions and its glue',
      { path: '^samples/ulp/([^/]+)/wire/' },
      { path: `${ours}|^dist/(plugins|providers)/`, pathNot: '^samples/ulp/$1/wire/' },
    ),
    forbid(
      'ulp-session-knows-no-glue',
      'the session of an upper-layer protocol is handed what comes, and says what is to be done',
      { path: '^samples/ulp/([^/]+)/session/' },
      { path: `${ours}|^dist/(plugins|providers)/`, pathNot: '^samples/ulp/$1/(wire|session)/' },
    ),
    forbid(
      'no-self-reference-inside',
      'a self-reference would get round the rules above',
      { path: shipped, pathNot: selfReferring },
      { path: '^(dist/|dapl(/|$))' },
    ),
    forbid(
      'nothing-stands-on-the-lab',
      'the page of the simulator shows all parts, and is a part of none',
      { path: ours, pathNot: '^(plugins/lab|test)/' },
      { path: '^plugins/lab/' },
    ),
    forbid(
      'mock-runs-in-a-browser',
      'the clock and the calls of Node are handed in by providers/host',
      { path: '^providers/mock/' },
      { dependencyTypes: ['core'] },
    ),
    forbid(
      'nothing-depends-on-tests',
      'tests and benchmarks are leaves',
      { path: ours, pathNot: '^(test|bench)/' },
      { path: '^(test|bench)/' },
    ),
    forbid(
      'rxjs-only-in-core-stream-and-rx',
      'streams are one view of an EVD, or of the state of a client, not the way core works',
      { path: shipped, pathNot: ['^core/(stream|rx)/', '^plugins/easy/client\\.ts$', cli] },
      npm('rxjs'),
    ),
    forbid(
      'nothing-stands-on-rx',
      'dapl/rx stands above the DAT objects: what is below works without it',
      { path: shipped, pathNot: ['^core/rx/', cli] },
      { path: '^core/rx/' },
    ),
    forbid(
      'tsyringe-only-in-composition-roots',
      'plugins and engines are plain classes with plain constructors',
      { path: shipped, pathNot: ['^core/di/', '^providers/[^/]+/index\\.ts$'] },
      npm('tsyringe'),
    ),
    forbid(
      'winston-only-in-the-node-entry',
      'everything else knows the logger interface',
      { path: shipped, pathNot: ['^plugins/node/', cli] },
      npm('winston'),
    ),
    forbid(
      'sans-io-imports-no-io',
      'sockets, files, timers, clocks and random sources are injected',
      { path: sansIo },
      { dependencyTypes: ['core'], pathNot: pureBuiltins },
    ),
    forbid(
      'no-dev-dependency-shipped',
      'what users install must be a dependency',
      { path: '^(core|plugins|providers|samples)/', pathNot: '/native/[a-z]+\\.mjs$' },
      { dependencyTypes: ['npm-dev'], dependencyTypesNot: ['type-only'] },
    ),
    forbid(
      'no-import-of-outputs',
      'sources import sources; only the exports map leads to dist',
      {},
      { path: '^dist/', dependencyTypes: ['local'] },
    ),
    forbid('no-unresolvable', 'the import leads nowhere', {}, { couldNotResolve: true }),
    forbid(
      'no-circular',
      'a cycle of imports that exist at run time',
      {},
      { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
    ),
  ],
  options: {
    doNotFollow: { path: ['node_modules', '^dist/'] },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.build.json' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'types', 'default'],
    },
  },
};
