import type { Setting, Settings } from '../../../guards/lib/settings.js'
import { type GuardKey, guards } from '../../../guards/roster.js'
import type { AgentConfig } from '../../../machines/agent/config.js'
import { type Kind, nullable, type PartialKind } from './kind.js'
import { amount, choice, count, countOrNull, flag, number, section, wholeNumber } from './value-kinds.js'

/** What the guards of the roster may be given, each under its key; `null` switches it off. */
export const guardSections = Object.fromEntries(
  guards.map(([key, { settings }]) => [key, nullable(toSection(settings))]),
) as { [Key in GuardKey]: Kind<GivenSettings<AgentConfig['guardrails'][Key]> | null> }

type GivenSettings<Value> = Value extends object
  ? { [Key in keyof Value]?: GivenSettings<Value[Key]> | undefined }
  : Value

function toSection(settings: Settings<object>): PartialKind<Record<string, Kind>> {
  return section(
    Object.fromEntries(Object.entries(settings).map(([key, setting]) => [key, toKind(setting as Setting)])),
  )
}

function toKind(setting: Setting): Kind {
  if (setting === 'flag') return flag()
  if (isChoice(setting)) return choice(...setting)
  if ('has' in setting) return setting.canBeOff ? nullable(toSection(setting.has)) : toSection(setting.has)
  if ('isNever' in setting) return countOrNull(setting.from, ', or null for never')
  const { from, to = Infinity, of } = setting
  if (of === 'milliseconds') return amount(of)
  if (of === 'share') return number(from, to, `a number from ${from} to ${to}`)
  return to === Infinity ? count(from) : wholeNumber(from, to, `a whole number from ${from} to ${to}`)
}

function isChoice(setting: Setting): setting is readonly [string, ...string[]] {
  return Array.isArray(setting)
}
