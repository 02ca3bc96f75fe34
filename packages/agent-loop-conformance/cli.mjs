#!/usr/bin/env node
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { cases } from './cases/index.mjs'
import { features } from './features.mjs'
import { readVariants, runControls, runVariant } from './run-suite.mjs'

const help = `Usage: agent-loop-conformance --adapter FILE [OPTIONS]

Runs ${cases.length} cases against an agent loop. A scripted server on this machine answers as a Chat Completions
provider does; there is no model and no key. The suite first checks itself against a correct loop
and against a loop with one mistake per case.

Options:
  --adapter FILE   the adapter: a module that exports 'open' (see --template)
  --case TEXT      run only the cases whose id contains this text; can be repeated
  --variant NAME   run only this variant of the adapter; can be repeated. In the variant 'defaults',
                   the cases of the class 'loops' pass no step limit
  --seed N         seed of the chunk sizes and of the order of the cases (default: 1)
  --json FILE      write all results with their evidence to FILE ('-': stdout, instead of the table)
  --no-controls    skip the self-check of the suite
  --list           print the cases and the features that they need
  --template       print an adapter to start from
  -h, --help       print this text

Exit code: 0 if no case fails, 1 if one fails, 2 for a wrong option or an adapter that cannot be loaded.
`

function leave(message) {
  process.stderr.write(`${message}\n`)
  process.exit(2)
}

function readOptions() {
  const names = { type: 'string', multiple: true, default: [] }
  const flag = { type: 'boolean', default: false }
  try {
    return parseArgs({
      options: {
        adapter: { type: 'string' },
        case: names,
        variant: names,
        seed: { type: 'string', default: '1' },
        json: { type: 'string' },
        'no-controls': flag,
        list: flag,
        template: flag,
        help: { ...flag, short: 'h' },
      },
    }).values
  } catch (error) {
    return leave(`${error.message}\nRun 'agent-loop-conformance --help' for the options.`)
  }
}

const list = () =>
  [
    ...cases.map(
      ({ id, title, needs }) => `${id.padEnd(28)} ${title}${needs.length ? ` [${needs.join(', ')}]` : ''}`,
    ),
    '',
    ...Object.entries(features).map(([name, meaning]) => `[${name}]`.padEnd(29) + meaning),
  ].join('\n')

/** A line per variant, then a line per case that did not pass. */
function formatTable({ controls, variants }) {
  const lines = []
  for (const { case: id, why } of controls ?? []) lines.push(`CONTROL ${id}: ${why}`)
  for (const { variant, error, results } of variants) {
    if (error) {
      lines.push(`${variant}: ${error}`)
      continue
    }
    const count = (kind) => results.filter(({ result }) => result === kind).length
    const failed = results.filter(({ result }) => result !== 'pass' && result !== 'not_claimed')
    lines.push(
      `${variant}: ${count('pass')} passed, ${failed.length} failed, ${count('not_claimed')} not claimed`,
    )
    for (const { case: id, result, evidence } of results)
      if (result !== 'pass') lines.push(`  ${result.padEnd(13)} ${id}: ${evidence}`)
  }
  return lines.join('\n')
}

const options = readOptions()
const print = (text) => process.stdout.write(`${text}\n`)
if (options.help) {
  process.stdout.write(help)
  process.exit(0)
}
if (options.list) {
  print(list())
  process.exit(0)
}
if (options.template) {
  process.stdout.write(readFileSync(new URL('template.mjs', import.meta.url)))
  process.exit(0)
}
if (!options.adapter) leave(`--adapter is missing.\n\n${help}`)
const file = resolve(options.adapter)
if (!existsSync(file)) leave(`--adapter: there is no file ${file}.`)
const seed = Number(options.seed)
if (!Number.isSafeInteger(seed)) leave(`--seed: '${options.seed}' is not a whole number.`)
const selected = cases.filter(
  ({ id }) => options.case.length === 0 || options.case.some((text) => id.includes(text)),
)
if (selected.length === 0) leave('--case: no id contains this text. --list prints the ids.')

const adapter = pathToFileURL(file).href
const known = await readVariants(adapter).catch((error) => leave(error.message))
const unknown = options.variant.find((name) => !known.includes(name))
if (unknown) leave(`--variant: the adapter has no variant '${unknown}'. It has ${known.join(', ')}.`)

const controls = options['no-controls'] ? undefined : await runControls({ cases: selected, seed })
const variants = await Promise.all(
  (options.variant.length > 0 ? options.variant : known).map(async (variant) => {
    const { error, results, loose } = await runVariant({ adapter, variant, cases: selected, seed })
    if (error) return { variant, error }
    return { variant, loose, results: selected.map(({ id }) => ({ case: id, ...results.get(id) })) }
  }),
)
const report = { node: process.version, seed, controls, variants }
const json = `${JSON.stringify(report, null, 2)}\n`
if (options.json === '-') process.stdout.write(json)
else {
  if (options.json) writeFileSync(options.json, json)
  print(formatTable(report))
}
const isGood =
  !controls?.length &&
  variants.every(
    ({ results }) => results?.every(({ result }) => result === 'pass' || result === 'not_claimed') ?? false,
  )
process.exit(isGood ? 0 : 1)
