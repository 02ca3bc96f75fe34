import type { Who } from './surface.js'
import { sender } from './world.js'

/**
 * The session access of each person's requests. The reader sees the owner's sessions but may not continue
 * them.
 */
export const grants: Record<Who, object | null> = {
  owner: { prefix: 'ann', by: sender, context: 'owner', mayContinue: true },
  reader: { prefix: 'ann', by: sender, context: 'reader' },
  stranger: { prefix: 'bob', by: 'bob', context: 'stranger' },
  nobody: null,
  operator: null,
}
