// Plays stories of many processes on one store, in simulated time: `npm run simulate -- …`
//   --seed N              plays one seed, and shrinks its story if it fails. --keep 'WHY' keeps it as a regression
//                         (--into FILE: in another list than test/simulation/regressions.json)
//   --seeds COUNT         plays this many seeds, from --from N (default 1), on --workers N (default 2); the regressions first
//   --planted             plants each defect of test/simulation/planted.mjs, and searches for it in up to 2,000 seeds
//   --planted known       plays only the known seed of each defect, which must be one of the first 2,000
//   --defect NAME         with --seed or --seeds: plants this defect
import { spawn } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { build } from 'esbuild'
import { planted } from '../test/simulation/planted.mjs'
import { engineFlags } from './suite.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const folder = join(root, '.simulation')
const ownRegressions = join(root, 'test/simulation/regressions.json')
const mostSeeds = 2000
/** Files made by this process, because others may run at the same time. */
const folders = new Set()

class BadOption extends Error {}

function readOptions() {
  const text = { type: 'string' }
  let values
  try {
    ;({ values } = parseArgs({
      options: {
        seed: text,
        seeds: text,
        from: text,
        workers: text,
        keep: text,
        into: text,
        defect: text,
        most: text,
        planted: { type: 'boolean' },
      },
      allowPositionals: true,
      strict: true,
    }))
  } catch (error) {
    throw new BadOption(error.message.split('\n')[0])
  }
  for (const name of ['seed', 'seeds', 'from', 'workers', 'most']) {
    const value = values[name]
    if (typeof value !== 'string') continue
    const isWhole = /^\d+$/.test(value) && Number.isSafeInteger(Number(value))
    if (!isWhole || (name !== 'seed' && Number(value) < 1))
      throw new BadOption(
        name === 'seed'
          ? `--seed takes a whole number, not '${value}'.`
          : `--${name} takes a positive integer, not '${value}'.`,
      )
    values[name] = Number(value)
  }
  if (values.defect !== undefined && !planted.some(({ name }) => name === values.defect))
    throw new BadOption(
      `--defect: there is no '${String(values.defect)}'. There are: ${planted.map(({ name }) => `'${name}'`).join(', ')}.`,
    )
  if (values.keep !== undefined && values.seed === undefined)
    throw new BadOption("--keep 'WHY' goes with --seed N.")
  if (values.seed === undefined && values.seeds === undefined && !values.planted)
    throw new BadOption('Say --seed N, --seeds COUNT or --planted.')
  return values
}

/** Bundles everything into one file, with a planted defect. */
async function bundle(defect) {
  mkdirSync(folder, { recursive: true })
  const outfile = join(folder, `${process.pid}-${planted.indexOf(defect)}.mjs`)
  folders.add(outfile)
  const left = new Set(defect?.patches)
  const plant = {
    name: 'plant',
    setup({ onLoad }) {
      onLoad({ filter: /\.ts$/ }, ({ path }) => {
        let contents = readFileSync(path, 'utf8')
        for (const patch of defect.patches.filter(({ file }) => path === join(root, file))) {
          if (contents.split(patch.find).length !== 2)
            throw new Error(
              `The defect '${defect.name}' has no place any more in ${patch.file}: ${patch.find}`,
            )
          contents = contents.replace(patch.find, () => patch.put)
          left.delete(patch)
        }
        return { contents, loader: 'ts' }
      })
    },
  }
  await build({
    entryPoints: [join(root, 'test/simulation/main.ts')],
    absWorkingDir: root,
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'es2022',
    packages: 'external',
    sourcemap: 'inline',
    sourcesContent: false,
    logLevel: 'error',
    plugins: defect ? [plant] : [],
  })
  for (const { file } of left)
    throw new Error(`The defect '${defect.name}' is in ${file}, which is not simulated.`)
  return outfile
}

/** Runs a simulation process and passes on each message. */
function run(file, args, hear) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [...engineFlags, file, ...args.map(String)], {
      cwd: root,
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    createInterface({ input: child.stdout }).on('line', (line) => hear(JSON.parse(line), child))
    child.once('error', reject)
    child.once('close', (code, signal) =>
      code === 0 || signal ? resolve() : reject(new Error(`A worker ended with code ${code}.`)),
    )
  })
}

async function ask(file, args) {
  const seen = []
  await run(file, args, (what) => seen.push(what))
  return seen
}

function printStory({ seed, broken, lines, ends, hash, again, uses, plan }) {
  for (const line of lines) console.log(line)
  console.log(`\nseed ${seed}: ${broken ?? `keeps every promise; it ends ${ends.join(', ')}`}`)
  console.log(`story ${hash.slice(0, 16)}, played again ${again.slice(0, 16)}`)
  for (const who of uses) console.log(`asked the platform: ${who}`)
  const { processes, sessions, faults, sayings } = plan
  console.log(
    `${processes} processes, ${sessions} sessions, ${faults.length} faults, ${sayings.length} sayings`,
  )
  for (const fault of faults) console.log(`  ${JSON.stringify(fault)}`)
}

async function playOne({ seed, keep, defect, into = ownRegressions }) {
  const file = await bundle(planted.find(({ name }) => name === defect))
  const [story] = await ask(file, ['story', seed])
  const [shrunk] = story.broken === null ? [story] : await ask(file, ['shrink', seed])
  printStory(shrunk)
  if (keep !== undefined) {
    const regressions = JSON.parse(readFileSync(into, 'utf8'))
    const others = regressions.filter((one) => one.seed !== seed)
    const list = [...others, { seed, why: keep, plan: shrunk.plan }].sort((a, b) => a.seed - b.seed)
    writeFileSync(into, `${JSON.stringify(list, null, 2)}\n`)
    console.log(`Kept in ${relative(root, into)}, which has ${list.length}.`)
  }
  return story.broken === null && story.hash === story.again && story.uses.length === 0
}

/** Plays stored regressions, as recorded and from their seeds. */
async function playRegressions(file) {
  const regressions = JSON.parse(readFileSync(ownRegressions, 'utf8'))
  const checked = await ask(file, [
    'check',
    ...regressions.flatMap(({ seed, plan }) => [seed, JSON.stringify(plan)]),
  ])
  const broken = checked.filter((one) => one.broken !== null)
  for (const one of broken) console.log(`regression, seed ${one.seed}: ${one.broken}`)
  console.log(`${regressions.length} regressions, ${broken.length} broken`)
  return broken.length === 0
}

async function playMany({ seeds, from = 1, workers = 2, defect }) {
  const file = await bundle(planted.find(({ name }) => name === defect))
  const areKept = await playRegressions(file)
  const began = performance.now()
  const broken = []
  const sums = []
  const shares = Array.from({ length: Math.min(workers, seeds) }, (_, i) => Math.ceil((seeds - i) / workers))
  await Promise.all(
    shares.map((share, i) =>
      run(file, ['seeds', from + i, shares.length, share], (what) => {
        if (what.played === undefined) console.log(`seed ${what.seed}: ${what.broken}`)
        ;(what.played === undefined ? broken : sums).push(what)
      }),
    ),
  )
  const sum = (name) => sums.reduce((all, one) => all + one[name], 0)
  const minutes = (performance.now() - began) / 60_000
  const ends = {}
  for (const one of sums)
    for (const [end, count] of Object.entries(one.ends)) ends[end] = (ends[end] ?? 0) + count
  for (const [end, count] of Object.entries(ends).sort(([, a], [, b]) => b - a))
    console.log(`${String(count).padStart(6)}  ${end}`)
  const perCore = Math.round(sum('played') / (sum('cpuMs') / 60_000))
  console.log(
    `${sum('played')} seeds, ${sum('steps')} steps, ${Math.round(sum('cpuMs') / 1000)} s of CPU: ${perCore} seeds a minute of CPU, ` +
      `${Math.round(sum('played') / minutes)} a minute here; ${broken.length} broken`,
  )
  const [first] = broken.sort((a, b) => a.seed - b.seed)
  if (first) {
    printStory((await ask(file, ['shrink', first.seed]))[0])
    console.log(
      `Play it again: npm run simulate -- --seed ${first.seed}. Keep it: npm run simulate -- --seed ${first.seed} --keep 'WHY'`,
    )
  }
  return areKept && broken.length === 0
}

/** The first seed that finds a defect, or the known one; null if none does. */
async function findDefect(file, { seed, isKnown, most }) {
  if (isKnown) {
    const [known] = await ask(file, ['seeds', seed, 1, 1])
    return known.broken === undefined || seed > mostSeeds ? null : known
  }
  const found = []
  await Promise.all(
    [1, 2].map((from) =>
      run(file, ['seeds', from, 2, Math.ceil(most / 2), 'stop'], (what, child) => {
        if (what.seed === undefined) return
        found.push(what)
        child.kill()
      }),
    ),
  )
  return found.sort((a, b) => a.seed - b.seed)[0] ?? null
}

async function playPlanted({ isKnown, defect: only, most = mostSeeds }) {
  const list = planted.filter(({ name }) => only === undefined || name === only)
  const seeds = list.map(({ seed }) => seed)
  const sound = await ask(await bundle(), ['check', ...seeds])
  let areFound = true
  for (const [i, defect] of list.entries()) {
    const alone = sound[i]
    const found = await findDefect(await bundle(defect), { seed: defect.seed, isKnown, most })
    areFound &&= found !== null && alone.broken === null
    const outcome = found ? `seed ${found.seed}: ${found.broken}` : 'NOT FOUND'
    console.log(
      `${defect.name.padEnd(48)} ${outcome}${alone.broken === null ? '' : ' (and without it, too)'}`,
    )
  }
  console.log(`${list.length} defects planted, ${areFound ? 'all found' : 'NOT all found'}`)
  return areFound
}

try {
  const options = readOptions()
  const isKnown = process.argv.includes('known')
  const isWell = options.planted
    ? await playPlanted({ ...options, isKnown })
    : options.seeds
      ? await playMany(options)
      : await playOne(options)
  process.exitCode = isWell ? 0 : 1
} catch (error) {
  if (!(error instanceof BadOption)) throw error
  console.error(error.message)
  process.exitCode = 2
} finally {
  for (const file of folders) rmSync(file, { force: true })
}
