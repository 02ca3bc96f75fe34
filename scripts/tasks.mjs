// The suites, benchmarks and examples: npm run suite|bench|example [-- NAME [ARGUMENTS]]. Without a name it lists them; `npm run bench`
// without a name runs the main benchmark.
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const build = 'npm run -s build &&'
const postgres = 'node scripts/postgres.mjs'

/** Shell commands by name. Arguments are appended. */
export const tasks = {
  suite: {
    'ai-sdk': 'node scripts/ai-sdk.mjs',
    api: `${build} node scripts/api.mjs --check`,
    browser: `${build} node scripts/browser.mjs`,
    chaos: 'node scripts/chaos.mjs',
    chat: 'node scripts/chat.mjs',
    conformance: `${build} node packages/agent-loop-conformance/cli.mjs --adapter conformance/adapters/statewright.mjs`,
    counts: `${build} node bench/counts.mjs`,
    crash: `${build} node test/crash/main.mjs`,
    declarations: `${build} node scripts/check-declarations.mjs`,
    format: 'npx biome format .',
    generated: 'node scripts/generate.mjs --check',
    graph: 'STATEWRIGHT_GRAPH=all node scripts/plain.mjs --together test/graph/*.test.ts',
    growth: 'STATEWRIGHT_GROWTH=all npm run -s test -- test/growth',
    guards: `${build} node bench/guards/main.mjs --check`,
    hosts: `${build} node scripts/hosts.mjs`,
    interpreter:
      'STATEWRIGHT_TESTS=all STATEWRIGHT_INTERPRETER=all node scripts/plain.mjs test/core/interpreter/*.test.ts',
    latency: 'STATEWRIGHT_LATENCY=${STATEWRIGHT_LATENCY:-all} npm run -s test -- test/scenarios/slow-',
    mcp: `${build} node test/mcp/conformance/main.mjs`,
    mutation: 'node scripts/mutation.mjs',
    pack: `${build} node scripts/check-pack.mjs`,
    package: 'npx publint --strict && npx attw --pack . --profile esm-only',
    pages: 'STATEWRIGHT_PAGES=all npm run -s test -- test/web/pages',
    pairs: 'node scripts/pairs.mjs',
    pictures: 'node scripts/pictures.mjs --check',
    postgres: `${build} ${postgres}`,
    principals: 'STATEWRIGHT_PRINCIPALS=all node scripts/plain.mjs test/principals/principals.test.ts',
    runtimes: `${build} node test/runtimes/main.mjs`,
    simulation: 'node scripts/simulate.mjs --seeds 1500',
    site: 'node scripts/site.mjs --test',
    starters: `${build} node scripts/starters.mjs`,
    taint:
      'STATEWRIGHT_TAINT=all node scripts/plain.mjs test/taint/complete.test.ts test/taint/taint.test.ts',
  },
  bench: {
    budgets: `${build} node bench/budgets.mjs`,
    chat: `${build} node --expose-gc bench/chat.mjs`,
    guards: `${build} node bench/guards/main.mjs`,
    hosts: `${build} node --no-deprecation bench/hosts.mjs`,
    limiter: `${build} node bench/limiter.mjs`,
    lists: `${build} ${postgres} bench/lists.mjs`,
    machine: `${build} node bench/machine.mjs`,
    main: `${build} node bench/main.mjs`,
    otel: `${build} node bench/otel.mjs`,
    peers: `${build} node bench/peers/main.mjs`,
    postgres: `${build} ${postgres} bench/postgres.mjs`,
    scale: `${build} node --no-deprecation bench/scale.mjs`,
    'send-all': `${build} node --no-deprecation bench/send-all/main.mjs`,
    sessions: `${build} node bench/sessions.mjs`,
    studio: `${build} node bench/studio.mjs`,
    'studio-list': `${build} ${postgres} bench/studio-list.mjs`,
    wire: `${build} node bench/wire.mjs`,
  },
  example: {
    chat: `${build} node examples/chat-plain/server.mjs`,
    'chat-react': `${build} npm ci --silent --prefix examples/chat-react && npm start --prefix examples/chat-react`,
    'chat-tenants': `${build} node examples/chat-tenants/server.mjs`,
    'coding-agent': `${build} node examples/coding-agent/main.mjs`,
  },
}

const file = fileURLToPath(import.meta.url)
if (process.argv[1] === file) {
  const [kind, ...rest] = process.argv.slice(2)
  const isDefault = kind === 'bench' && (rest[0] === undefined || rest[0].startsWith('--'))
  const [name, ...args] = isDefault ? ['main', ...rest] : rest
  const command = tasks[kind]?.[name]
  if (command === undefined) {
    if (name !== undefined) console.error(`'${name}' is not a ${kind}.`)
    console.log(`npm run ${kind} -- NAME [ARGUMENTS]\n\n  ${Object.keys(tasks[kind] ?? tasks).join('\n  ')}`)
    process.exit(name === undefined ? 0 : 2)
  }
  const cwd = fileURLToPath(new URL('..', import.meta.url))
  const { status } = spawnSync('sh', ['-c', `${command} "$@"`, 'sh', ...args], { cwd, stdio: 'inherit' })
  process.exit(status ?? 1)
}
