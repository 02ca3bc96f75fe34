// The conformance suite, which runs scripted cases against agent loops. `npm run conformance -- --help` prints the options.
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { cases } from '../packages/agent-loop-conformance/cases/index.mjs'
import { facts } from './facts.mjs'
import { acceptFailures } from './accept-failures.mjs'
import { findPageProblem, mergeReport, writePage, writeReport } from './page.mjs'
import { runPeers } from './run-peers.mjs'
import { summarize } from './summary.mjs'

const peers = Object.keys(facts)
const here = (name) => fileURLToPath(new URL(name, import.meta.url))

const help = `npm run conformance -- --peer NAMES [OPTIONS]

Runs ${cases.length} cases against agent loops: a scripted server, no model. First come the controls of the suite: a loop that does
each case right and one that does it wrong. Exit 1: a failure or a pass that conformance/expected.json does not expect.

  --peer NAMES   ${peers.join(',')}
  --all          all of these; installs them into bench/peers/node_modules when they are not there (750 MB)
  --case TEXT    the cases whose id contains this text; may be given again
  --seed N       how the server cuts its streams into pieces, and the order of the cases: 1
  --json FILE    writes every result with its evidence
  --node PATH    the Node that runs the libraries; several need 22.19 or later. Without it: this one, or where it is older the
                 one that comes with the peers (Linux on x64)
  --write        with --all: the results become conformance/results.json and docs/conformance.md, those of --case beside the
                 others; alone: the page anew
  --accept       with --write: the failures become those that conformance/expected.json expects
  --check        runs nothing: docs/conformance.md has to be what conformance/results.json says
  --help         this text
`

function leave(text) {
  process.stderr.write(`${text}\n`)
  process.exit(2)
}

function readNames() {
  const text = { type: 'string' }
  const flag = { type: 'boolean', default: false }
  try {
    return parseArgs({
      options: {
        peer: text,
        all: flag,
        case: { ...text, multiple: true, default: [] },
        seed: { ...text, default: '1' },
        json: text,
        node: text,
        write: flag,
        accept: flag,
        check: flag,
        help: flag,
      },
    }).values
  } catch (error) {
    return leave(`${error.message}\n\n${help}`)
  }
}

const options = readNames()
if (options.help) {
  process.stdout.write(help)
  process.exit(0)
}
if (options.check) {
  const problem = findPageProblem()
  if (problem) leave(problem)
  process.exit(0)
}
if (options.write && !options.all) {
  if (options.peer) leave('--write takes all libraries: use --all.')
  writePage()
  process.exit(0)
}
const names = options.all
  ? peers
  : (options.peer?.split(',') ?? leave(`Which libraries? Use --peer or --all.\n\n${help}`))
for (const name of names) {
  if (!peers.includes(name)) leave(`There is no adapter ${name}.\n\n${help}`)
}
const seed = Number(options.seed)
if (!Number.isSafeInteger(seed)) leave(`--seed: '${options.seed}' is not a whole number.`)
const some = cases.filter(
  ({ id }) => options.case.length === 0 || options.case.some((part) => id.includes(part)),
)
if (some.length === 0) leave('--case: no case has this text in its id.')

if (options.accept && !options.write) leave('--accept goes with --all --write.')

const readExpected = () => JSON.parse(readFileSync(here('./expected.json'), 'utf8'))
const report = await runPeers({ names, cases: some, seed, node: options.node, expected: readExpected() })
if (options.accept) acceptFailures(report)
if (options.json) writeFileSync(options.json, `${JSON.stringify(report, null, 2)}\n`)
if (options.write) writeReport(some.length < cases.length ? mergeReport(report) : report)
const expected = readExpected()
const { text, isGood } = summarize(report, expected)
process.stdout.write(text)
process.exit(isGood ? 0 : 1)
