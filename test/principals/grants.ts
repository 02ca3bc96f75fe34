import type { Who } from './surface.js'

/**
 * The session access of each person's requests. The reader sees the owner's sessions but may not continue
 * them.
 */
export const grants: Record<Who, object | null> = {
  owner: { prefix: 'ann', context: 'owner', mayContinue: true },
  reader: { prefix: 'ann', context: 'reader' },
  stranger: { prefix: 'bob', context: 'stranger' },
  nobody: null,
  operator: null,
}
