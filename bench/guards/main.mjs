// Measures the guards next to detectors modeled on other programs. Inputs are recorded sessions, scripts of loops and of honest
// work, and the live agent. `replaySteps` gives the guards the same facts as the machine does.
//
//   npm run bench -- guards [FOLDER]    prints all tables, and writes them to docs/guardrails-measured.md
//   node bench/guards/main.mjs --check  fails when a limit is exceeded, or when the tables of scripts and behaviors are stale
import { readFileSync, writeFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { createAgent, defineTool, presets } from 'statewright'
import { replaySteps } from 'statewright/testing'
import { SimulatedClock } from 'xstate'
import { behaviours, playBehaviour } from './behaviours.mjs'
import { sessionsOf } from './corpus.mjs'
import { written } from '../block.mjs'
import { median } from '../statistics.mjs'
import { others } from './others.mjs'
import { honest, loops, undecided } from './scripts.mjs'

/** The number of responses within which a loop must be stopped. */
const longest = 60
/** The same limit for loops that no rule stops. */
const slowest = 400
const classic = { progress: null, repeatedCall: {}, repeatedOutput: {}, cycle: {}, failing: {} }

/** All detectors in the comparison, as functions of recorded steps and tools. */
const ours = (config) => (steps, tools) => {
  const replay = replaySteps(steps, config, tools)
  const hasFinding = (action) => replay.findings.some((finding) => finding.action === action)
  return {
    halt: replay.halt?.step ?? null,
    rule: replay.halt?.rule ?? replay.halt?.guard,
    executed: replay.calls.executed,
    nudged: hasFinding('nudge'),
    blocked: hasFinding('block'),
  }
}

const theirs = (detector) => (steps) => {
  let executed = 0
  let start = 0
  const turns = [...steps.keys()].filter((i) => i > 0 && steps[i].user)
  for (const end of [...turns, steps.length]) {
    const turn = steps.slice(start, end)
    const called = [...turn.keys()].filter((i) => turn[i].calls.length > 0)
    const at = detector(called.map((i) => turn[i].calls))
    const last = at === null ? turn.length : called[at] + 1
    executed += turn.slice(0, last).reduce((sum, { calls }) => sum + calls.length, 0)
    if (at !== null) return { halt: start + called[at], executed, nudged: false, blocked: false }
    start = end
  }
  return { halt: null, executed, nudged: false, blocked: false }
}

const judges = {
  'the default policy': ours({}),
  'the preset guards, all on': ours({ guardrails: classic }),
  'presets.aar': ours(presets.aar),
  'presets.openhuman': ours(presets.openhuman),
  ...Object.fromEntries(Object.entries(others).map(([name, detector]) => [name, theirs(detector)])),
}

const asStep = (calls) => (Array.isArray(calls) ? { calls } : calls)
const stepsOf = (script, length = longest) =>
  (script.kind === 'loop' ? Array.from({ length }, (_, n) => script.step(n)) : script.steps).map(asStep)

function judgeLoop(judge, script, length) {
  const steps = stepsOf(script, length)
  const { halt, executed, rule, nudged } = judge(steps, script.tools)
  const news = steps
    .slice(0, (halt ?? steps.length) + 1)
    .flatMap(({ calls }) => calls.filter((call) => call.news))
  return {
    name: script.name,
    halt,
    rule,
    nudged,
    wasted: Math.max(0, executed - news.length - script.useful),
  }
}

function judgeScripts(judge) {
  const stopped = loops.map((script) => judgeLoop(judge, script))
  const open = undecided.map((script) => judgeLoop(judge, script, slowest))
  const worked = honest.map((script) => ({ name: script.name, ...judge(stepsOf(script), script.tools) }))
  return { stopped, open, worked }
}

const count = (list, is) => list.filter(is).length
const mean = (numbers) => (numbers.reduce((sum, one) => sum + one, 0) / numbers.length).toFixed(1)
const share = (part, whole) => (whole === 0 ? '–' : `${((100 * part) / whole).toFixed(2)} %`)

function scriptsTable() {
  const rows = Object.entries(judges).map(([name, judge]) => {
    const { stopped, open, worked } = judgeScripts(judge)
    return [
      name,
      count(stopped, ({ halt }) => halt !== null),
      count(stopped, ({ halt, wasted }) => halt !== null && wasted <= 10),
      mean(stopped.map(({ wasted }) => wasted)),
      count(open, ({ halt }) => halt !== null),
      count(worked, ({ halt }) => halt !== null),
      count(worked, ({ blocked }) => blocked),
    ]
  })
  const head = [
    'detector',
    `stopped loops (of ${loops.length})`,
    'stopped within ten wasted calls',
    'mean wasted calls',
    `halted work-like loops (of ${undecided.length})`,
    `halted honest scripts (of ${honest.length})`,
    'honest scripts with a refused call',
  ]
  return table(head, rows)
}

function loopsTable() {
  const { stopped, open } = judgeScripts(judges['the default policy'])
  const row = ({ name, wasted, halt, rule, nudged }) => [
    name,
    wasted,
    halt === null ? (nudged ? 'nudged' : 'never') : `${halt + 1} responses`,
    halt === null ? '' : `\`${rule}\``,
  ]
  const head = ['wasted calls', 'stopped after', 'by']
  return [table(['loop', ...head], stopped.map(row)), table(['work-like loop', ...head], open.map(row))].join(
    '\n\n',
  )
}

function honestTable() {
  const { worked } = judgeScripts(judges['the default policy'])
  const rows = honest.map((script, i) => {
    const { halt, nudged, blocked } = worked[i]
    const calls = stepsOf(script).reduce((sum, step) => sum + step.calls.length, 0)
    return [script.name, calls, halt === null ? 'no' : 'yes', blocked ? 'yes' : 'no', nudged ? 'yes' : 'no']
  })
  return table(['honest work', 'calls', 'halted', 'refused a call', 'nudged'], rows)
}

function table(head, rows) {
  const line = (cells) => `| ${cells.join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')
}

const library = { createAgent, defineTool, SimulatedClock }

/** Each behavior on the live agent. Honest behaviors also run with `polling` tools. */
async function playBehaviours() {
  const played = { honest: [], polling: [], stuck: [] }
  for (const one of behaviours.honest) {
    played.honest.push({ name: one.name, ...(await playBehaviour(library, one)) })
    played.polling.push({ name: one.name, ...(await playBehaviour(library, one, true)) })
  }
  for (const one of behaviours.stuck)
    played.stuck.push({ name: one.name, ...(await playBehaviour(library, one)) })
  return played
}

const meanWaste = (stuck) => Math.round(stuck.reduce((sum, { wasted }) => sum + wasted, 0) / stuck.length)

function behavioursTable({ honest: worked, polling, stuck }) {
  const describe = ({ isHalted, rule }) => (isHalted ? `halted by \`${rule}\`` : 'succeeded')
  const honestRows = worked.map((one, n) => [one.name, describe(one), describe(polling[n])])
  const stuckRows = stuck.map(({ name, isHalted, rule, responses, wasted }) => [
    name,
    isHalted ? `${responses} responses` : 'never',
    isHalted ? `\`${rule}\`` : '',
    wasted,
  ])
  return [
    table(
      [
        `honest policies: ${count(worked, ({ isHalted }) => isHalted)} of ${worked.length} halted`,
        'without annotations',
        'with `polling`',
      ],
      honestRows,
    ),
    table(
      [
        `stuck policies: ${count(stuck, ({ isHalted }) => isHalted)} of ${stuck.length} stopped, ${meanWaste(stuck)} calls wasted on average`,
        'stopped after',
        'by',
        'wasted calls',
      ],
      stuckRows,
    ),
  ].join('\n\n')
}

/** The limits that the scripts exceed. */
function listScriptFaults() {
  const { stopped, open, worked } = judgeScripts(judges['the default policy'])
  const early = count(stopped, ({ halt, wasted }) => halt !== null && wasted <= 10)
  return [
    ...stopped.filter(({ halt }) => halt === null).map(({ name }) => `never stopped: ${name}`),
    ...open
      .filter(({ halt }) => halt !== null)
      .map(({ name }) => `halted, though it looks like work: ${name}`),
    ...stopped
      .filter(({ wasted }) => wasted > 30)
      .map(({ name, wasted }) => `${wasted} wasted calls: ${name}`),
    ...(early < 22 ? [`only ${early} loops are stopped within ten wasted calls`] : []),
    ...worked
      .filter(({ halt }) => halt !== null)
      .map(({ name, rule }) => `honest, but halted (${rule}): ${name}`),
    ...worked.filter(({ blocked }) => blocked).map(({ name }) => `honest, but refused a call: ${name}`),
  ]
}

/** The limits that the behaviors exceed. */
function listBehaviourFaults({ honest: worked, polling, stuck }) {
  const halted = worked.filter(({ isHalted }) => isHalted)
  const stopped = count(stuck, ({ isHalted }) => isHalted)
  return [
    ...(halted.length > 5 ? [`${halted.length} honest behaviours are halted`] : []),
    ...polling
      .filter(({ isHalted, blocked }) => isHalted || blocked)
      .map(({ name, rule }) => `honest, with polling tools, but halted or refused a call (${rule}): ${name}`),
    ...(stopped < 10 ? [`only ${stopped} stuck behaviours are stopped`] : []),
    ...(meanWaste(stuck) > 250 ? [`${meanWaste(stuck)} calls are wasted on average`] : []),
  ]
}

/** @param names the detectors to compare */
function judgeCorpus(sessions, names = Object.keys(judges)) {
  const sources = {}
  const halted = []
  const totals = Object.fromEntries(
    names.map((name) => [name, { ended: 0, halted: 0, failed: 0, stopped: 0 }]),
  )
  for (const session of sessions) {
    const { id, source, success, steps, tools } = session
    const row = (sources[source] ??= {
      ended: 0,
      nudged: 0,
      blocked: 0,
      halted: 0,
      failed: 0,
      stopped: 0,
      at: [],
      calls: 0,
      saved: 0,
    })
    const calls = steps.reduce((sum, step) => sum + step.calls.length, 0)
    for (const name of names) {
      const verdict = judges[name](steps, tools)
      const isHalted = verdict.halt !== null
      const total = totals[name]
      if (success === true) {
        total.ended++
        if (isHalted) total.halted++
      } else if (success === false) {
        total.failed++
        if (isHalted) total.stopped++
      }
      if (name !== 'the default policy') continue
      if (success === true) {
        row.ended++
        if (verdict.nudged) row.nudged++
        if (verdict.blocked) row.blocked++
        if (isHalted) {
          row.halted++
          halted.push(`${id} (${verdict.rule}, step ${verdict.halt + 1} of ${steps.length})`)
        }
      } else if (success === false) {
        row.failed++
        row.calls += calls
        row.saved += calls - verdict.executed
        if (isHalted) {
          row.stopped++
          row.at.push(verdict.halt + 1)
        }
      }
    }
  }
  return { sources, totals, halted }
}

function sourcesTable(sources) {
  const all = Object.values(sources)
  const total = Object.fromEntries(
    ['ended', 'nudged', 'blocked', 'halted', 'failed', 'stopped', 'calls', 'saved'].map((key) => [
      key,
      all.reduce((sum, row) => sum + row[key], 0),
    ]),
  )
  total.at = all.flatMap(({ at }) => at)
  const row = ([name, one]) => [
    name,
    one.ended,
    one.nudged,
    one.blocked,
    one.halted,
    one.failed,
    one.stopped,
    median(one.at) ?? '–',
    share(one.saved, one.calls),
  ]
  return table(
    [
      'source',
      'succeeded',
      'nudged',
      'refused a call',
      'halted',
      'failed',
      'stopped',
      'median step of the stop',
      'calls saved',
    ],
    [...Object.entries(sources), ['all', total]].map(row),
  )
}

function totalsTable(totals) {
  return table(
    ['detector', 'halted successful sessions', 'stopped failed sessions'],
    Object.entries(totals).map(([name, { ended, halted, failed, stopped }]) => [
      name,
      `${halted} of ${ended} (${share(halted, ended)})`,
      `${stopped} of ${failed} (${share(stopped, failed)})`,
    ]),
  )
}

const docs = new URL('../../docs/guardrails-measured.md', import.meta.url)

async function main([first]) {
  const isCheck = first === '--check'
  const played = await playBehaviours()
  const scripts = `${scriptsTable()}\n\n${loopsTable()}\n\n${honestTable()}`
  const tables = behavioursTable(played)
  const text = readFileSync(docs, 'utf8')
  let next = written(written(text, 'scripts', scripts), 'behaviours', tables)
  const wrong = [...listScriptFaults(), ...listBehaviourFaults(played)]
  if (isCheck && next !== text)
    wrong.push('docs/guardrails-measured.md is not current: npm run bench -- guards')
  const isOther = first !== undefined && !isCheck
  const folder = isOther
    ? pathToFileURL(`${first}/`)
    : new URL('../../../shared/trajectories/', import.meta.url)
  const { sources, totals, halted } = judgeCorpus(
    sessionsOf(folder),
    isCheck ? ['the default policy'] : undefined,
  )
  wrong.push(...halted.map((one) => `succeeded, but halted: ${one}`))
  if (!isCheck) console.log(`${scripts}\n\n${tables}\n`)
  if (Object.keys(sources).length === 0) console.log('No recorded sessions here: skipped.')
  else if (isCheck) {
    const { ended } = totals['the default policy']
    console.log(`${halted.length} of ${ended} successful sessions are halted.`)
  } else {
    const corpus = `${sourcesTable(sources)}\n\n${totalsTable(totals)}`
    console.log(corpus)
    if (!isOther) next = written(next, 'corpus', corpus)
  }
  for (const fault of wrong) console.error(fault)
  console.log(wrong.length === 0 ? 'The guards keep every limit.' : `${wrong.length} faults.`)
  if (!isCheck && next !== text) writeFileSync(docs, next)
  process.exitCode = wrong.length === 0 ? 0 : 1
}

await main(process.argv.slice(2))
