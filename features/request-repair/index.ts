/** Public face of the request-repair pack: nothing; it listens to the turns of the agent pack. */
export {}
