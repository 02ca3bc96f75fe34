import { expectArgument, objectRule } from '../../core/base/expect-argument.js'
import type { AgentCheck, AgentReport } from './check-agent.js'

const signs: Record<AgentCheck['outcome'], string> = { kept: '✓', broken: '✗', skipped: '–', unproven: '?' }

/**
 * A report to read: what was tried, what broke, and how to repeat it.
 *
 * @example
 * console.log(formatAgentReport(await checkAgent((model) => createAgent({ model, tools: [add] }))))
 */
export function formatAgentReport(report: AgentReport): string {
  expectArgument(
    'formatAgentReport(report)',
    report,
    objectRule(['checks', 'broken', 'seed'], 'a report of checkAgent'),
  )
  const { checks, seed } = report
  const count = (outcome: AgentCheck['outcome']): number =>
    checks.filter((check) => check.outcome === outcome).length
  const counts = (['kept', 'broken', 'unproven', 'skipped'] as const).flatMap((outcome) =>
    count(outcome) > 0 || outcome === 'broken' ? [`${count(outcome)} ${outcome}`] : [],
  )
  const lines = [`${checks.length} checks with seed ${seed}: ${counts.join(', ')}`]
  for (const of of new Set(checks.map((check) => check.class))) {
    lines.push('', of)
    for (const check of checks) if (check.class === of) lines.push(...formatCheck(check))
  }
  return `${lines.join('\n')}\n`
}

function formatCheck({ name, outcome, tried, seen, problem, repeat }: AgentCheck): string[] {
  const first = `  ${signs[outcome]} ${name.split('/')[1]}: ${tried}`
  if (outcome === 'kept') return [seen === '' ? first : `${first} (${seen})`]
  if (outcome === 'skipped') return [`${first}. Skipped: ${problem}`]
  return [first, `      ${problem}`, `      repeat: ${repeat}`]
}
