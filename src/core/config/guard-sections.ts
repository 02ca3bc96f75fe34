import type { Setting, Settings } from '../../../guards/lib/settings.js'
import { type GuardKey, guards } from '../../../guards/roster.js'
import type { AgentConfig } from '../../../machines/agent/config.js'
import { type Kind, nullable, type Partly } from './kind.js'
import { amount, choice, count, countOrNull, flag, number, section, whole } from './values.js'

/** What the guards of the roster may be given, each under its key; `null` switches it off. */
export const guardSections = Object.fromEntries(
  guards.map(([key, { settings }]) => [key, nullable(sectionOf(settings))]),
) as { [Key in GuardKey]: Kind<Given<AgentConfig['guardrails'][Key]> | null> }

type Given<Value> = Value extends object ? { [Key in keyof Value]?: Given<Value[Key]> | undefined } : Value

function sectionOf(settings: Settings<object>): Partly<Record<string, Kind>> {
  return section(
    Object.fromEntries(Object.entries(settings).map(([key, setting]) => [key, kindOf(setting as Setting)])),
  )
}

function kindOf(setting: Setting): Kind {
  if (setting === 'flag') return flag()
  if (isWords(setting)) return choice(...setting)
  if ('has' in setting) return setting.canBeOff ? nullable(sectionOf(setting.has)) : sectionOf(setting.has)
  if ('isNever' in setting) return countOrNull(setting.from, ', or null for never')
  const { from, to = Infinity, of } = setting
  if (of === 'milliseconds') return amount(of)
  if (of === 'share') return number(from, to, `a number from ${from} to ${to}`)
  return to === Infinity ? count(from) : whole(from, to, `a whole number from ${from} to ${to}`)
}

function isWords(setting: Setting): setting is readonly [string, ...string[]] {
  return Array.isArray(setting)
}
