import { createHash } from 'node:crypto'
import { forbidPlatform } from './forbid.js'
import { createPlan, type Plan } from './plan.js'
import { play, type Story } from './play.js'
import { shrink } from './shrink.js'

/**
 * One process that plays stories, started by `scripts/simulate.mjs`. It reads a command and prints one JSON
 * line per result.
 */

const say = (what: object): void => void process.stdout.write(`${JSON.stringify(what)}\n`)

/** A story in plain lines: time, process, action. */
function formatStory({ trace }: Story): string[] {
  return trace
    .filter(([, , what]) => !what.startsWith('asks for messages'))
    .map(([at, who, what]) => `${(at / 1000).toFixed(3).padStart(9)} s  ${who.padEnd(6)} ${what}`)
}

const hashStory = ({ trace, ends }: Story): string =>
  createHash('sha256')
    .update(JSON.stringify([trace, ends]))
    .digest('hex')

async function playSeeds(from: number, step: number, count: number, isToStop: boolean): Promise<void> {
  const began = process.cpuUsage()
  const ends: Record<string, number> = {}
  let [steps, played] = [0, 0]
  for (let seed = from; played < count; seed += step) {
    const story = await play(createPlan(seed))
    played += 1
    steps += story.steps
    for (const end of story.ends) ends[end] = (ends[end] ?? 0) + 1
    if (story.broken.length === 0) continue
    say({ seed, broken: story.broken[0] })
    if (isToStop) break
  }
  const { user, system } = process.cpuUsage(began)
  say({ played, steps, cpuMs: (user + system) / 1000, ends })
}

/** Plays a plan twice and prints its story. `uses` lists uses of the platform's time or randomness. */
async function tellStory(plan: Plan): Promise<void> {
  const { value: story, uses } = await forbidPlatform(() => play(plan))
  const again = await play(plan)
  say({
    seed: plan.seed,
    plan,
    broken: story.broken[0] ?? null,
    lines: formatStory(story),
    ends: story.ends,
    hash: hashStory(story),
    again: hashStory(again),
    uses: [...new Set(uses)],
  })
}

const [command, ...args] = process.argv.slice(2)
const toPlan = (text = ''): Plan =>
  text.startsWith('{') ? (JSON.parse(text) as Plan) : createPlan(Number(text))

switch (command) {
  case 'seeds': {
    const [from = 1, step = 1, count = 1] = args.map(Number)
    await playSeeds(from, step, count, args[3] === 'stop')
    break
  }
  case 'story':
    await tellStory(toPlan(args[0]))
    break
  case 'shrink':
    await tellStory(await shrink(toPlan(args[0])))
    break
  case 'check':
    for (const text of args) {
      const plan = toPlan(text)
      const { broken } = await play(plan)
      say({ seed: plan.seed, broken: broken[0] ?? null })
    }
    break
  default:
    throw new Error(`There is no command '${command}'.`)
}
