import { truncate } from '../../guards/lib/cut.js'
import type { SkillInfo } from '../core/tools/tool-outcomes.js'
import { maxIndexChars } from './skill-limits.js'

const opening =
  'Skills are instructions for certain tasks. When a task fits one of these, call load_skill with its name before you begin, and follow what it says. read_skill_file reads the files that it speaks of. Call unload_skill when the task is done.'

/** The index of the skills, of a bounded length: descriptions are cut evenly, and skills that have no room are counted. */
export function formatIndex(skills: readonly Pick<SkillInfo, 'name' | 'description'>[]): string {
  if (skills.length === 0) return ''
  const room = maxIndexChars - opening.length - 60
  for (const chars of [1_024, 400, 200, 100, 50]) {
    const lines = skills.map(({ name, description }) => `- ${name}: ${truncate(toLine(description), chars)}`)
    const text = lines.join('\n')
    if (text.length <= room) return `${opening}\n${text}`
  }
  const names: string[] = []
  let length = 0
  for (const { name } of skills) {
    length += name.length + 3
    if (length > room) break
    names.push(`- ${name}`)
  }
  const left = skills.length - names.length
  return [opening, ...names, ...(left > 0 ? [`and ${left} more, which load_skill names`] : [])].join('\n')
}

const toLine = (text: string): string => text.replaceAll(/\s+/g, ' ')
