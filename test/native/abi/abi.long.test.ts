// Our declarations of foreign ABIs against the distribution's headers: every size, offset, value
// and function type. Without those headers it is skipped, and says what to install; never in CI.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { leaveOut } from '../../support/left-out.js';
import { rowsOf } from './declarations.js';

const root = join(import.meta.dirname, '../../../..');
const native = join(root, 'providers/verbs/native');
const fake = join(root, 'test/native/fake-ibverbs');

/** A test that needs a header of the distribution. */
function needs(test: Mocha.Context, header: string, packages: string): void {
  if (existsSync(join('/usr/include', header))) return;
  leaveOut(test, `no /usr/include/${header}`, `apt-get install ${packages}`);
}

interface Header {
  readonly ours: string;
  readonly theirs: string;
  /** What we leave out, or name otherwise because we never touch it. */
  readonly exceptions: readonly string[];
}

const HEADERS: readonly Header[] = [
  { ours: join(native, 'abi/verbs_values.h'), theirs: 'infiniband/verbs.h', exceptions: [] },
  { ours: join(native, 'abi/verbs_device_abi.h'), theirs: 'infiniband/verbs.h', exceptions: [] },
  {
    ours: join(native, 'abi/verbs_abi.h'),
    theirs: 'infiniband/verbs.h',
    exceptions: [
      'ibv_context_ops.before_mw',
      'ibv_context_ops.create_cq',
      'ibv_context_ops.between_cq_and_srq',
      'ibv_context_ops.between_srq_and_qp',
      'ibv_context_ops.after_qp',
      'ibv_query_port', // its struct has a name of its own there, "compat"
    ],
  },
  {
    ours: join(native, 'abi/rdmacm_abi.h'),
    theirs: 'rdma/rdma_cma.h',
    exceptions: ['', '.sgid', '.dgid', '.pkey'].map((member) => `rdma_addr.ibaddr${member}`),
  },
  {
    ours: join(native, 'abi/xrc_abi.h'),
    theirs: 'infiniband/verbs.h',
    exceptions: [
      'ibv_srq_init_attr_ex.tag_matching',
      'ibv_qp_init_attr_ex.others',
      'verbs_context.between_port_and_qp',
      'verbs_context.placeholder',
    ],
  },
];

/** The kernel's names of what umad_abi.h names in our way. */
const UMAD: readonly [ours: string, theirs: string, members: Readonly<Record<string, string>>][] = [
  [
    'umad::Header',
    'struct ib_user_mad_hdr',
    {
      id: 'id',
      status: 'status',
      timeoutMs: 'timeout_ms',
      retries: 'retries',
      length: 'length',
      qpn: 'qpn',
      qkey: 'qkey',
      lid: 'lid',
      sl: 'sl',
      pathBits: 'path_bits',
      grhPresent: 'grh_present',
      gidIndex: 'gid_index',
      hopLimit: 'hop_limit',
      trafficClass: 'traffic_class',
      gid: 'gid',
      flowLabel: 'flow_label',
      pkeyIndex: 'pkey_index',
    },
  ],
  [
    'umad::Registration',
    'struct ib_user_mad_reg_req2',
    {
      id: 'id',
      qpn: 'qpn',
      managementClass: 'mgmt_class',
      classVersion: 'mgmt_class_version',
      flags: 'flags',
      methodMask: 'method_mask',
      oui: 'oui',
      rmppVersion: 'rmpp_version',
    },
  ],
];

describe('declarations of foreign ABIs', () => {
  let directory = '';
  before(() => (directory = mkdtempSync(join(tmpdir(), 'dapl-abi-'))));
  after(() => rmSync(directory, { recursive: true }));

  /** Lines that the program prints about a header. */
  const layouts = (include: string, flags: readonly string[]): string[] => {
    const program = join(directory, 'layouts');
    const source = join(import.meta.dirname, '../../../..', 'test/native/abi/layouts.cc');
    const compiled = spawnSync(
      'c++',
      [
        '-std=c++17',
        '-w',
        `-DHEADER=${include}`,
        `-I${directory}`,
        ...flags,
        '-o',
        program,
        source,
      ],
      { encoding: 'utf8' },
    );
    assert.equal(compiled.status, 0, compiled.stderr);
    return spawnSync(program, { encoding: 'utf8' }).stdout.split('\n');
  };

  for (const { ours, theirs, exceptions } of HEADERS.filter((h) => existsSync(h.ours))) {
    it(`${ours.slice(root.length + 1)} is ${theirs}`, function () {
      needs(this, theirs, 'libibverbs-dev librdmacm-dev');
      const rows = rowsOf(readFileSync(ours, 'utf8'), (name) => exceptions.includes(name));
      assert.ok(rows.length > 20, `${rows.length} declarations found`);
      writeFileSync(join(directory, 'rows.inc'), `${rows.join('\n')}\n`);
      const expected = layouts(`<${theirs}>`, []);
      assert.equal(expected.length, rows.length + 1, 'a line for every row');
      assert.deepEqual(layouts(`"${ours}"`, [`-I${native}`, `-I${fake}`]), expected);
    });
  }

  it('umad_abi.h is rdma/ib_user_mad.h of the kernel', function () {
    const theirs = 'rdma/ib_user_mad.h';
    needs(this, theirs, 'linux-libc-dev');
    for (const [ours, kernel, members] of UMAD) {
      const places = (type: string, names: readonly string[], include: string): string[] => {
        const rows = names.map((name) => `MEMBER(${type}, ${name})`);
        writeFileSync(join(directory, 'rows.inc'), [`SIZE(${type})`, ...rows].join('\n'));
        return layouts(include, [`-I${native}`]).map((line) => line.replace(/^.*: /, ''));
      };
      assert.deepEqual(
        places(ours, Object.keys(members), '"abi/umad_abi.h"'),
        places(kernel, Object.values(members), `<${theirs}>`),
        ours,
      );
    }
  });

  it('notices a member that has moved, and one that is missing', () => {
    const rows = rowsOf('struct s {\n  int a;\n  union { short b, c[2]; };\n};', () => false);
    const members = ['MEMBER(struct s, a)', 'MEMBER(struct s, b)', 'MEMBER(struct s, c)'];
    assert.deepEqual(rows, ['SIZE(struct s)', ...members]);
    writeFileSync(join(directory, 'rows.inc'), rows.join('\n'));
    const of = (name: string, text: string): string[] => {
      writeFileSync(join(directory, name), text);
      return layouts(`"${name}"`, []);
    };
    const first = of('a.h', 'struct s { int a; union { short b, c[2]; }; };');
    assert.notDeepEqual(first, of('b.h', 'struct s { long a; union { short b, c[2]; }; };'));
    assert.throws(() => of('c.h', 'struct s { int a; };'), /no member named/);
  });
});
