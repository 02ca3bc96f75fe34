// Runs the cases of one adapter in one variant, in a separate process. The parent receives each result as a message.
import { cases } from './cases/index.mjs'
import { checkLacks } from './features.mjs'
import { runCase } from './run-case.mjs'
import { createRandom, startServer } from './server.mjs'

const { adapter, variant, ids, seed, repeats, width, mistakes } = JSON.parse(process.argv[2])
// The parent prints the table to stdout, so the output of a library goes to stderr.
console.log = console.error
console.warn = console.error

const onLoose = (error) => process.send({ loose: String(error?.message ?? error).slice(0, 200) })
process.on('unhandledRejection', onLoose)
process.on('uncaughtException', onLoose)

function shuffle(list) {
  const random = createRandom(seed)
  const keyed = list.map((value) => ({ value, key: random() }))
  return keyed.toSorted((a, b) => a.key - b.key).map(({ value }) => value)
}

/** The adapter's variants. An adapter without `variants` has one, named `documented`. */
function readVariants({ open, openStored, variants = { documented: {} } }) {
  if (typeof open !== 'function') throw new Error(`${adapter} does not export a function 'open'.`)
  return Object.fromEntries(
    Object.entries(variants).map(([name, lacks]) => {
      checkLacks(lacks, `${adapter}, variants.${name}`)
      return [name, openStored ? lacks : { resume: 'the adapter has no `openStored`', ...lacks }]
    }),
  )
}

async function runCases(selected, context) {
  const run = async (one) => {
    process.send({ started: one.id })
    process.send({ id: one.id, ...(await runCase(one, context)) })
  }
  const queue = selected.filter(({ alone }) => !alone).values()
  const runLane = async () => {
    for (const one of queue) await run(one)
  }
  // A case mostly waits for retries, so several run at a time.
  await Promise.all(Array.from({ length: width }, runLane))
  // Cases that keep the process busy would slow down the others.
  for (const one of selected.filter(({ alone }) => alone)) await run(one)
}

/** The loaded adapter. Sends the reason when it cannot be used. */
async function loadAdapter() {
  try {
    const loop = await import(adapter)
    return { open: loop.open, variants: readVariants(loop) }
  } catch (error) {
    process.send({ problem: `${error?.name ?? 'Error'}: ${error?.message ?? error}` })
    throw error
  }
}

try {
  const { open, variants } = await loadAdapter()
  if (variant === undefined) process.send({ variants: Object.keys(variants) })
  else {
    const selected = shuffle(cases.filter(({ id }) => ids.includes(id)))
    const server = await startServer(seed)
    await runCases(selected, { adapter, variant, lacks: variants[variant], open, server, repeats, mistakes })
  }
  process.send({ ended: true }, () => process.exit(0))
} catch (error) {
  process.stderr.write(`${error?.stack ?? error}\n`, () => process.exit(1))
}
