import { readFileSync } from 'node:fs'
import { root } from './snippets.js'

/** The names that `npm run` accepts, with suites, benchmarks and examples as `suite -- NAME`. */
export async function listScripts(): Promise<string[]> {
  const { scripts } = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as {
    scripts: Record<string, string>
  }
  const { tasks } = (await import('../../scripts/tasks.mjs' as string)) as {
    tasks: Record<string, Record<string, string>>
  }
  const named = Object.entries(tasks).flatMap(([kind, byName]) =>
    Object.keys(byName).map((name) => `${kind} -- ${name}`),
  )
  return [...Object.keys(scripts), ...named]
}
