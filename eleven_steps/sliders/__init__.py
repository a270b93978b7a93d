"""What a learner moves by hand: films under sliders, the stage, the lever.

explore_* and break_step return them. What moves enters, Python with its scripts and styles. Checks
never do: a notebook hands in what they say.
"""

from eleven_steps.sliders.breaking import Break, break_step
from eleven_steps.sliders.film import Film, film
from eleven_steps.sliders.lesson import run, tokens
from eleven_steps.sliders.lever import explore_lever
from eleven_steps.sliders.live import Live
from eleven_steps.sliders.model_films import explore_cache, explore_checkpoints, explore_models
from eleven_steps.sliders.own import explore_class
from eleven_steps.sliders.products import explore_blocks
from eleven_steps.sliders.stage import explore_stage
from eleven_steps.sliders.words import explore_meaning
