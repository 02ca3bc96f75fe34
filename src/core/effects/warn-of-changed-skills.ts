import type { ActiveSkill } from '../../../machines/agent/skills.js'
import type { AgentRuntime } from '../live/runtime.js'
import type { SkillInfo } from '../tools/skill-tools.js'

/** Runs that were looked at, with the skills that were active then. */
const checked = new WeakMap<AgentRuntime, readonly ActiveSkill[]>()

/** Emits a warning for each active skill whose file is no longer what the session has loaded. Once, until skills change. */
export function warnOfChangedSkills(
  runtime: AgentRuntime,
  active: readonly ActiveSkill[],
  now: readonly SkillInfo[] | undefined,
): void {
  if (active.length === 0 || checked.get(runtime) === active) return
  checked.set(runtime, active)
  for (const { name, hash } of active) {
    const skill = now?.find((one) => one.name === name)
    if (skill?.hash === hash) continue
    const what = skill
      ? `The skill '${name}' is another one than the session has loaded. The session goes on with what it has; load_skill reads the new one.`
      : `The session has loaded the skill '${name}', which the agent has no more. Its instructions go on to hold.`
    runtime.emit({ type: 'warning', code: skill ? 'skill_changed' : 'skill_missing', message: what })
  }
}
