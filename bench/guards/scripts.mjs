// Small scripts of looping agents and of working agents. Loops never finish. Honest work finishes. Each step lists the calls of one
// response and their results, assuming that every call runs.

const ok = (name, args, result, more = {}) => ({ name, arguments: JSON.stringify(args), result, ...more })
const failed = (name, args, result, more = {}) => ok(name, args, result, { status: 'error', ...more })
const refused = (name, args, status) => ok(name, args, 'No.', { status })

const reads = {
  look: { readOnly: true },
  grep: { readOnly: true },
  search: { readOnly: true },
  read: { readOnly: true },
}
const page = (topic) => `About ${topic}. `.padEnd(700, 'All of this has been said before. ')
const two = (n) => String(n).padStart(2, '0')
const clock = (n) => `2026-03-01 10:${two(n % 60)}:${two((n * 7) % 60)}`
const hex = (n) => (n * 2654435761 + 4096).toString(16).padStart(12, 'a1b2c3d4e5f6')

/** A loop. `step(n)` is its nth response, counted from 0. Its `useful` calls count as work. */
const loop = (name, step, useful = 1, tools = reads) => ({ name, kind: 'loop', step, useful, tools })
const cycle = (name, calls, tools) => loop(name, (n) => [calls[n % calls.length](n)], calls.length, tools)

const letters = ['a', 'b', 'c', 'd', 'e', 'f', 'g']

export const loops = [
  loop('the same call', () => [ok('look', { at: 'a' }, 'nothing here')]),
  loop('the same call, with a clock in its result', (n) => [
    ok('look', { at: 'a' }, `${clock(n)} nothing here`),
  ]),
  loop('the same call, with a duration in its result', (n) => [
    ok('run', { cmd: 'make' }, `0 errors in ${n}.${n % 10}s`),
  ]),
  loop('the same call, with new ids in its result', (n) => [
    ok('look', { at: 'a' }, `{"requestId": "${hex(n)}", "session_id": "s-${n}", "items": []} at 0x${hex(n)}`),
  ]),
  loop('the same call, refused by a person', () => [refused('pay', { to: 'a' }, 'rejected')]),
  loop('the same call, refused by a shield', () => [refused('run', { cmd: 'env' }, 'blocked')]),
  loop('different calls, all refused', (n) => [
    refused('pay', { to: `person ${n}` }, n % 2 ? 'rejected' : 'blocked'),
  ]),
  loop('the same call, denied by policy', () => [
    ok('write', { path: '/etc' }, 'Not allowed.', { status: 'denied' }),
  ]),
  loop('the same call with more and more spaces', (n) => [
    ok('grep', { pattern: `todo${' '.repeat(n)}` }, 'No matches.'),
  ]),
  loop('a tool that does not exist', () => [
    ok('fly', { to: 'Rome' }, 'There is no such tool.', { status: 'unknown_tool' }),
  ]),
  loop('tools that do not exist, under many names', (n) => [
    ok(`fly_${letters[n % 7]}${n}`, {}, 'There is no such tool.', { status: 'unknown_tool' }),
  ]),
  cycle('a cycle of two calls', [() => ok('look', { at: 'a' }, 'a'), () => ok('look', { at: 'b' }, 'b')]),
  cycle(
    'a cycle of three calls, with clocks in their results',
    letters.slice(0, 3).map((at) => (n) => ok('look', { at }, `${clock(n)} ${at}`)),
  ),
  cycle(
    'a cycle of five views',
    letters.slice(0, 5).map((at) => () => ok('read', { at }, page(at))),
  ),
  cycle(
    'a cycle of seven calls',
    letters.map((at) => () => ok('look', { at }, at)),
  ),
  cycle('an edit and its undo, around a failing test', [
    () => ok('edit', { old: 'a', new: 'b' }, 'Edited.'),
    () => failed('test', {}, '1 failed'),
    () => ok('edit', { old: 'b', new: 'a' }, 'Edited.'),
    () => failed('test', {}, '1 failed'),
  ]),
  loop('the same failing call', () => [failed('run', { cmd: 'make' }, 'No rule to make target.')]),
  loop(
    'the same call, which alternately fails and succeeds',
    (n) => [n % 2 ? ok('run', { cmd: 'make' }, 'Done.') : failed('run', { cmd: 'make' }, 'Locked.')],
    2,
  ),
  loop('calls that all fail with the same error', (n) => [
    failed('run', { cmd: `python step${n}.py` }, 'python: command not found'),
  ]),
  loop('calls that all fail with different errors', (n) => [
    failed(
      'run',
      { cmd: `try ${letters[n % 7].repeat(n + 1)}` },
      `Line ${n}: unexpected ${letters[n % 7].repeat(n + 2)}`,
    ),
  ]),
  loop('a temporary error that never ends', () => [
    failed('fetch', { url: 'a' }, 'Timed out.', { errorKind: 'transient' }),
  ]),
  loop(
    'an empty action between other actions',
    (n) => [
      n % 3 === 2
        ? ok('look', { at: letters[n % 7] }, letters[n % 7])
        : ok('run', { cmd: '' }, 'No command was given.'),
    ],
    8,
  ),
  loop('the same failure, with a reference in its error', (n) => [
    failed('work', { on: 'it' }, `Internal error, reference ${reference(n)}.`),
  ]),
  loop('fifty identical calls in one response', () =>
    Array.from({ length: 50 }, () => ok('mail', { to: 'a', text: 'Hi.' }, 'sent')),
  ),
]

/** A deterministic pseudorandom number. */
const chance = (n, below) => ((Math.imul(n + 1, 0x9e3779b1) ^ 0x5bd1) >>> 7) % below
const shuffled = (items, n) =>
  items
    .map((item, at) => [chance(n * 31 + at * 7, 9973), item])
    .sort(([a], [b]) => a - b)
    .map(([, item]) => item)
const reference = (n) => `${letters[chance(n, 7)]}${chance(n, 9973) + 1000}${letters[chance(n * 3, 7)]}x`
const names = 'Ada Ben Cleo Dan Eve Finn Gus Hana Ivo Jun Kai Lea Mia Noa Ola'.split(' ')
const name = (n) =>
  `${names[n % names.length]} ${letters[chance(n, 7)].toUpperCase()}. ${names[chance(n, 15)]}`
const word = (n) => [...n.toString(7).padStart(5, '0')].map((digit) => letters[digit]).join('')
const filler = (n) => shuffled(names, n).slice(0, 6).join(' ')

/** Loops that no rule stops. They produce occasional news, or look like honest work. The benchmark judges 400 responses of each. */
export const undecided = [
  loop('a counter in the arguments, the same long result', (n) => [ok('look', { page: n }, page('nothing'))]),
  loop(
    'a dummy call together with the same call',
    (n) => [ok('look', { at: 'a' }, 'nothing'), ok('note', { text: `Note ${n}` }, `kept ${n}`)],
    2,
  ),
  loop('the same call four times, then a new one', (n) => [
    n % 5 === 4
      ? ok('look', { at: `place ${n}` }, `found ${n}`, { news: true })
      : ok('look', { at: 'a' }, 'nothing'),
  ]),
  loop(
    'the same calls repeated in random order',
    (n) => [
      [0, 0, 1, 0, 1, 1, 0, 2][n % 8] === 0
        ? ok('look', { at: 'a' }, 'a')
        : ok('grep', { pattern: `b${n % 8 > 6 ? n : ''}` }, 'No matches.'),
    ],
    2,
  ),
  loop('the same result list in a different order each time', (n) => [
    ok('look', { at: 'desk' }, shuffled(names, n).join('\n')),
  ]),
  loop('the same argument list in a different order each time', (n) => [
    ok('search', { tags: shuffled(names, n) }, 'No matches.'),
  ]),
  loop('a new reference in each result', (n) => [
    ok('search', { for: 'a seat' }, `No seats. Your reference: ${reference(n)}`),
  ]),
  loop('a new reference in each result of an unannotated tool', (n) => [
    ok('work', { on: 'it' }, `Tried. Reference ${reference(n)}.`),
  ]),
  loop('a counter in each result of a read-only tool', (n) => [
    ok('look', { at: 'a' }, `Look ${n}: nothing.`),
  ]),
  loop('two alternating calls, each with a counter in its result', (n) => [
    ok('look', { at: n % 2 ? 'a' : 'b' }, `Look ${n}: nothing.`),
  ]),
  loop('an output that grows by the same line', (n) => [
    ok('work', { on: 'it' }, 'Tried, without success.\n'.repeat(n + 1)),
  ]),
  loop('an output that grows by a numbered line, of a read-only tool', (n) => [
    ok('read', { path: 'log' }, Array.from({ length: n + 1 }, (_, at) => `try ${at}: no`).join('\n')),
  ]),
  loop('an output that grows by lines of the same few words', (n) => [
    ok('read', { path: 'log' }, Array.from({ length: n + 1 }, (_, at) => `${name(at)} came`).join('\n')),
  ]),
  loop(
    'reading seventy files in a loop',
    (n) => [ok('read', { path: `src/${n % 70}.ts` }, `${filler(n % 70)} ${n % 70}`)],
    70,
  ),
  loop(
    'reading 120 files in a loop, with an unannotated tool',
    (n) => [ok('run', { cmd: `cat ${n % 120}.ts` }, `${filler(n % 120)} ${n % 120}`)],
    120,
  ),
  loop('a counter in the arguments, the same short result', (n) => [ok('look', { page: n }, '[]')]),
  loop('a counter in the arguments, the same short result of an unannotated tool', (n) => [
    ok('work', { attempt: n }, 'ok'),
  ]),
  loop('a random reference in the arguments', (n) => [
    ok('look', { reference: reference(n) }, 'No such order.'),
  ]),
  loop('a counter in each result of an unannotated tool', (n) => [
    ok('press', { key: 'Left' }, `Score ${n}`),
  ]),
  loop('an output that grows by new words', (n) => [
    ok('read', { path: 'log' }, Array.from({ length: n + 1 }, (_, at) => `${word(at)} came`).join('\n')),
  ]),
]

/** Honest work, with all of its responses. */
const work = (name, steps, tools = reads) => ({ name, kind: 'honest', steps, tools })
const each = (count, step) => Array.from({ length: count }, (_, n) => step(n))

export const honest = [
  work(
    'paging, with empty last pages',
    each(12, (n) => [ok('search', { page: n }, n < 8 ? `items ${n * 10}` : '[]')]),
  ),
  work(
    'polling for forty minutes with a `polling` tool',
    each(80, () => [ok('poll', { job: 7 }, 'running')]),
    {
      poll: { polling: true },
    },
  ),
  work(
    'a waiting tool',
    each(12, () => [ok('wait', { s: 30 }, 'still running', { durationMs: 30_000 })]),
    {},
  ),
  work(
    'waiting for a build, with a clock in the output',
    each(20, (n) => [
      ok('write_stdin', { chars: '' }, `${clock(n)} compiling, ${n * 5} s elapsed`, { durationMs: 5_000 }),
    ]),
    {},
  ),
  work(
    'reading after each edit',
    each(12, (n) => [
      [ok('edit', { line: n, text: `x${n}` }, 'Edited.')],
      [ok('read', { path: 'a.ts' }, page(`version ${n}`))],
    ]).flat(),
  ),
  work(
    'tests with the same failure after each edit',
    each(14, (n) => [
      [ok('edit', { path: 'a.ts', text: `attempt ${letters[n % 7]} ${n}` }, 'Edited.')],
      [failed('test', {}, `1 failed, 12 passed in ${n}.2s`)],
    ]).flat(),
  ),
  work(
    'an edit and a test in one response',
    each(10, (n) => [
      ok('edit', { path: 'a.ts', text: `attempt ${n}` }, 'Edited.'),
      failed('test', {}, `1 failed, 12 passed in 0.${n}s`),
    ]),
  ),
  work(
    'eight thoughts',
    each(8, (n) => [ok('think', { thought: `Then, ${letters[n % 7]}: ${n}.` }, '')]),
    {},
  ),
  work(
    'searches without a match',
    each(10, (n) => [ok('grep', { pattern: `${letters[n % 7]}Handler${n}` }, 'No matches.')]),
  ),
  work(
    'thirteen days without a flight',
    each(13, (n) => [ok('search', { day: `2026-05-${two(n + 1)}` }, '[]')]),
  ),
  work(
    'nine different commands that fail',
    each(9, (n) => [
      failed('run', { cmd: `pip install ${letters[n % 7]}${n}` }, `No package ${letters[n % 7]}${n}.`),
    ]),
    {},
  ),
  work(
    'twenty edits',
    each(20, (n) => [ok('edit', { line: n + 1, text: `line ${n}` }, 'Edited.')]),
    {},
  ),
  work(
    'twenty mails',
    each(20, (n) => [
      ok('mail', { to: `person-${n}@example.com`, text: `Hello, ${letters[n % 7]}.` }, 'sent'),
    ]),
    {},
  ),
  work(
    'forty files',
    each(40, (n) => [
      ok(
        'write',
        {
          path: `src/${letters[n % 7].repeat((n % 5) + 1)}-${n}.ts`,
          text: `export const ${letters[n % 7]} = '${letters[(n * 3) % 7]}'`,
        },
        'ok',
      ),
    ]),
    {},
  ),
  work(
    'scrolling',
    each(25, (n) => [ok('press', { key: 'PageDown' }, `lines ${n * 40} to ${n * 40 + 39}`)]),
    {},
  ),
  work(
    'retries after a temporary error',
    each(6, (n) => [
      n < 5
        ? failed('fetch', { url: 'a' }, 'Timed out.', { errorKind: 'transient' })
        : ok('fetch', { url: 'a' }, page('it')),
    ]),
  ),
  work(
    'status, diff and tests after each edit',
    each(10, (n) => [
      [ok('edit', { path: 'a.ts', text: `attempt ${n}` }, 'Edited.')],
      [ok('run', { cmd: 'git status --short' }, ' M a.ts')],
      [ok('run', { cmd: 'git diff' }, `+attempt ${n}`)],
      [failed('run', { cmd: 'npm test' }, `1 failed in ${n}.5s`)],
    ]).flat(),
    {},
  ),
  work(
    'three key presses in one response',
    each(3, (n) => each(3, () => ok('press', { key: 'Down' }, `row ${n + 3}`))),
    {},
  ),
  work(
    'the same question in six turns',
    each(6, () => ({ user: true, calls: [ok('look', { at: 'status' }, 'green')] })),
  ),
  work('rejected once, then done differently', [
    [refused('pay', { to: 'a', amount: 900 }, 'rejected')],
    [ok('look', { at: 'limits' }, 'at most 500')],
    [ok('pay', { to: 'a', amount: 500 }, 'paid')],
  ]),
  work(
    'a growing queue',
    each(20, (n) => [ok('look', { at: 'queue' }, `${n + 1} waiting`)]),
  ),
  work(
    'alternately looking and acting',
    each(15, (n) => [
      [ok('look', { at: 'board' }, `position ${n}`)],
      [ok('move', { to: `${letters[n % 7]}${(n % 8) + 1}` }, 'moved')],
    ]).flat(),
  ),
  work(
    'a hundred links, many of them broken',
    each(100, (n) => [
      n % 12 === 11
        ? ok('check_link', { url: `https://example.com/page/${n}` }, '200 OK')
        : failed('check_link', { url: `https://example.com/page/${n}` }, 'HTTP 404 Not Found'),
    ]),
    {},
  ),
  work(
    'a hundred broken links, each with a different error',
    each(100, (n) => [
      failed(
        'check_link',
        { url: `https://example.com/${name(n)}` },
        `GET https://example.com/${name(n)}: 404`,
      ),
    ]),
    {},
  ),
  work(
    'a hundred name searches without a result',
    each(100, (n) => [ok('search', { name: name(n) }, '[]')]),
  ),
  work(
    'a hundred lookups of unknown names',
    each(100, (n) => [failed('lookup', { name: name(n) }, 'Error: not found')]),
    {},
  ),
  work(
    'a build, polled with an unannotated tool',
    each(120, (n) => [ok('build_status', { id: 7 }, n < 119 ? 'running' : 'passed')]),
    {},
  ),
  work(
    'a build with a decreasing ETA',
    each(120, (n) => [
      ok(
        'get_build',
        { id: 7 },
        n < 119 ? `{"status": "running", "eta": "${600 - n * 5} s"}` : '{"status": "passed"}',
      ),
    ]),
    {},
  ),
  work(
    'a build, polled with sleeps in between',
    each(60, (n) => [
      [ok('sleep', { seconds: 1 }, 'ok')],
      [ok('check', { job: 'build' }, n < 59 ? 'in_progress' : 'success')],
    ]).flat(),
    {},
  ),
  work(
    'a download with a percentage',
    each(101, (n) => [ok('look', { at: 'download' }, `${n} %`)]),
  ),
  work(
    'a hundred updated rows',
    each(100, (n) => [ok('update', { row: n, value: n * 7 }, 'ok')]),
    {},
  ),
  work(
    'a hundred edits, each followed by the same test failure',
    each(100, (n) => [
      [ok('edit', { path: 'a.ts', line: n, text: `const x = ${n}` }, 'Edited.')],
      [failed('test', {}, `1 failed, 12 passed in ${n % 10}.2s`)],
    ]).flat(),
  ),
  work(
    'a hundred edits and failing tests in a shell',
    each(100, (n) => [
      [ok('run', { cmd: `sed -i s/a/${name(n)}/ a.ts` }, '')],
      [ok('run', { cmd: 'npm test' }, '1 failed, 12 passed')],
    ]).flat(),
    {},
  ),
  work(
    'forty responses, each with an edit and a test',
    each(40, (n) => [
      ok('edit', { path: 'a.ts', text: `attempt ${n}` }, 'Edited.'),
      failed('test', {}, '1 failed'),
    ]),
    {},
  ),
  work(
    'five unchanged checks after each edit',
    each(20, (n) => [
      [ok('edit', { path: 'a.ts', text: `attempt ${n}` }, 'Edited.')],
      ...['types', 'lint', 'format', 'unit', 'build'].map((check) => [
        failed('run', { check }, `${check}: 1 failed`),
      ]),
    ]).flat(),
    {},
  ),
  work(
    'a hundred mails',
    each(100, (n) => [ok('mail', { to: `${name(n)}@example.com`, text: `Hello, ${name(n)}.` }, 'sent')]),
    {},
  ),
  work(
    'a hundred files, read twice',
    each(200, (n) => [ok('read', { path: `src/${n % 100}.ts` }, `${filler(n % 100)} ${n % 100}`)]),
  ),
  work(
    'a number game with four keys',
    each(300, (n) => [
      ok('press', { key: ['Left', 'Right', 'Up', 'Down'][chance(n, 4)] }, `${n} ${n * 3} ${n * 7}`),
    ]),
    {},
  ),
  work(
    'failures between successful steps',
    each(16, (n) => [
      n % 2
        ? failed('run', { cmd: `step ${letters[n % 7]}${n}` }, `Missing ${letters[n % 7]}${n}.`)
        : ok('run', { cmd: `install ${n}` }, `installed ${n}`),
    ]),
    {},
  ),
]
