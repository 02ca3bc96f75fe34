/** Leaves nothing out: a request that does not fit is not sent. */
export const none = (): null => null
