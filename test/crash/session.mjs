import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { problemsOf } from './checks.mjs'
import { look } from './look.mjs'
import { runProcess } from './process.mjs'

/**
 * Plays one session, killed once for each of `kills` and then left to end, and returns its problems. A kill
 * is `{ kind, fault }`, at a point of the program, or `{ kind, afterMs }`, at an instant. `damage` is applied
 * to the folder after each kill. The folder of a session with problems is kept.
 */
export async function playSession({ name, kills, isSlow, damage, losesEffects }, model, reference) {
  const dir = mkdtempSync(join(tmpdir(), 'statewright-crash-'))
  const { baseURL } = model.session()
  const looks = []
  const met = []
  let problems
  try {
    let outcome = null
    for (const { kind, fault, afterMs } of kills) {
      outcome = await runProcess({ dir, baseURL, fault, isSlow }, { killAfterMs: afterMs })
      if (outcome !== null) break
      damage?.(dir)
      looks.push(await look(dir))
      const { place, inDoubt } = looks.at(-1)
      met.push({ kind, place, isInDoubt: inDoubt.length > 0 })
    }
    outcome ??= await runProcess({ dir, baseURL, isSlow })
    const end = await look(dir)
    problems = problemsOf({ outcome, looks, end, reference, losesEffects })
  } catch (error) {
    problems = [error.stack]
  }
  if (problems.length === 0) rmSync(dir, { recursive: true, force: true })
  return { name, kills: met, missed: kills.length - met.length, problems, dir }
}

/** The uninterrupted run, the reference for the others. */
export async function playReference(model) {
  const dir = mkdtempSync(join(tmpdir(), 'statewright-crash-'))
  try {
    const { baseURL, failed } = model.session()
    const outcome = await runProcess({ dir, baseURL })
    if (outcome.error) throw new Error(outcome.error.stack)
    return { ...outcome, failed, end: await look(dir) }
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}
