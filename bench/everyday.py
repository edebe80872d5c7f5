"""Facts as people mention them in passing, and questions that ask for them later in other words.

Most sentences have no figure, no capital name and no cue word. Each comes with a question that shares few words with it,
often only the subject. Which facts there are, and what each is about, depends on the seed.
"""

from random import Random

from bench.planted import Evidence

_POOLS: dict[str, tuple[str, ...]] = {
    "rel": (
        *("sister", "brother", "neighbour", "landlord", "uncle", "aunt", "boss", "flatmate", "cousin", "grandmother"),
        *("dentist", "coach", "daughter", "son", "godfather", "colleague", "tutor", "niece", "nephew", "mentor"),
    ),
    "room": (
        *("kitchen", "attic", "hallway", "garage", "bathroom", "balcony", "cellar", "bedroom", "porch", "study"),
        *("pantry", "shed", "greenhouse", "conservatory", "laundry room", "guest room", "loft", "workshop"),
    ),
    "thing": (
        *("bike", "sofa", "piano", "camera", "tent", "fridge", "drill", "violin", "printer", "canoe", "bookshelf"),
        *("dishwasher", "telescope", "sewing machine", "lawnmower", "suitcase", "projector", "kayak", "typewriter"),
    ),
    "food": (
        *("lentil soup", "rendang", "goulash", "apple strudel", "fried rice", "dumplings", "pumpkin curry", "paella"),
        *("banana bread", "ramen", "potato salad", "gado-gado", "lasagne", "shakshuka", "cheesecake", "pierogi"),
    ),
    "plant": (
        *("tomatoes", "basil", "roses", "strawberries", "ferns", "peas", "tulips", "chillies", "lavender", "pears"),
        *("mint", "sunflowers", "beans", "orchids", "grapes", "rhubarb", "lilies", "radishes"),
    ),
    "hobby": (
        *("pottery", "climbing", "fencing", "choir", "chess", "woodcarving", "rowing", "salsa", "astronomy", "archery"),
        *("beekeeping", "calligraphy", "sailing", "juggling", "badminton", "quilting", "origami", "bouldering"),
    ),
    "place": (
        *("harbour", "bakery", "library", "market", "museum", "station", "quarry", "lighthouse", "ferry", "cinema"),
        *("swimming pool", "botanical garden", "campus", "castle", "airport", "stadium", "bookshop", "brewery"),
    ),
    "pet": ("cat", "dog", "parrot", "rabbit", "tortoise", "hamster", "goat", "pony", "canary", "ferret", "gecko"),
    "topic": (
        *("budget", "thesis", "newsletter", "website", "garden plan", "insurance claim", "job application", "lease"),
        *("wedding speech", "grant proposal", "exam", "tax return", "podcast", "portfolio", "field trip", "survey"),
    ),
    "tool": (
        *("spreadsheet", "postgres", "docker", "notion", "blender", "latex", "excel", "photoshop", "rust", "figma"),
        *("kubernetes", "wordpress", "matlab", "godot", "arduino", "terraform", "ableton", "autocad"),
    ),
    "colour": ("green", "dark blue", "yellow", "grey", "orange", "white", "turquoise", "burgundy", "beige", "purple"),
    "when": (
        *("next spring", "after the holidays", "in late autumn", "before the exams", "once the rain stops", "in May"),
        *("next weekend", "after payday", "when school is out", "on her birthday", "at the end of term"),
    ),
    "why": (
        *("the noise was too much", "it got too expensive", "my back hurts", "nobody had time", "the doctor said so"),
        *("it broke twice", "we ran out of space", "the weather turned", "the lease ends", "it gives me headaches"),
    ),
}

# What is said, and what is asked for it.
_MENTIONED: tuple[tuple[str, str], ...] = (
    ("my {rel} is moving into the flat above the {place}", "Who will live over the {place}?"),
    ("we painted the {room} {colour} in the end, it took all weekend", "Which colour did the {room} get?"),
    ("the {pet} was limping so we took it to the vet, it was only a thorn", "What was wrong with the {pet}?"),
    ("I gave up {hobby} because {why}", "Why did I quit {hobby}?"),
    ("I lent the {thing} to my {rel} and still have not got it back", "Where did the {thing} end up?"),
    ("nothing beats the {food} that my {rel} makes for us", "Whose cooking do I love most, and which dish?"),
    ("the {plant} died again, I think I water them too often", "What did I do wrong with the {plant}?"),
    ("my {rel} got me into {hobby} and now we go together", "How did I start with {hobby}?"),
    ("we are putting off the {topic} until {when}", "When do we want to tackle the {topic}?"),
    ("I share the {room} with two others so it has to stay tidy", "Why must the {room} be kept in order?"),
    ("I never learned {tool} properly, I just copy what others do", "How well do I know {tool}?"),
    ("the {thing} came from a flea market and half of it was missing", "Where did I buy the {thing}?"),
    ("my {rel} cannot stand {food}, so I leave it out when we eat together", "What should I not serve my {rel}?"),
    ("the {place} is where my {rel} and I first met", "What does the {place} mean to me?"),
    ("I get seasick, which rules out the {place} trip for me", "What keeps me from going to the {place}?"),
    ("the {topic} has to go through my {rel} first, nobody else may sign it", "Who approves the {topic}?"),
    ("we had a leak in the {room} and the floor is ruined", "What happened to the {room}?"),
    ("I would rather fix the {thing} than buy another one", "What is my plan for the {thing}?"),
    ("the {pet} sleeps in the {room} now, it is warmer there", "Where does the {pet} spend the night?"),
    ("they let me go at the {place}, so I am looking around again", "Why am I searching for work?"),
    ("my {rel} has a spare key in case I lock myself out", "Who can open the door for me?"),
    ("the {food} was burnt because I fell asleep on the sofa", "How did the {food} get spoiled?"),
    ("for the {topic} I work with {tool}, everything else felt clumsy", "Which software do I use for the {topic}?"),
    ("we swapped the {thing} for a box of {plant} seeds", "What did we get in exchange for the {thing}?"),
    ("I am on the night shift at the {place} until {when}", "What are my working hours at the {place} like?"),
    ("my {rel} retired and spends every day on {hobby}", "What does my {rel} do since leaving work?"),
    ("the {room} is too dark for the {plant}, so they went to the window", "Why were the {plant} moved?"),
    ("I have been sleeping badly since we moved near the {place}", "Since when do I have trouble at night?"),
    ("the {topic} got turned down and I have to start over", "How did the {topic} turn out?"),
    ("we named the {pet} after my {rel}, who found it rather funny", "Where does the name of the {pet} come from?"),
    ("my {rel} taught me to make {food} without any sugar", "From whom did I learn the {food}?"),
    ("I dropped the {thing} down the stairs and the lid is cracked", "What is broken on the {thing}?"),
    ("the {place} closes early now, so I go before work", "At what time of day do I visit the {place}?"),
    ("we are saving up for a {thing}, but the roof comes first", "What has priority over the {thing}?"),
    ("I keep mixing up the dates of the {topic}, my {rel} reminds me", "Who helps me remember the {topic}?"),
    (
        "my {rel} is afraid of dogs, so the {pet} stays outside on visits",
        "What happens with the {pet} when guests come?",
    ),
    ("I signed up for {hobby} {when}, they had one place left", "What course did I book?"),
    ("the people at the {place} still owe me for the {thing}", "Who has not paid me yet?"),
    ("our {room} faces the street and we hear every truck", "Which part of the home is loud?"),
    ("I chose {tool} for it, mostly because my {rel} can help out", "Why was {tool} picked?"),
    ("{hobby} is on hold because {why}", "What stopped me from doing {hobby}?"),
    ("the {plant} are for my {rel}, please do not let me forget", "For whom do I grow the {plant}?"),
    ("we walk to the {place} every morning, it clears my head", "What is my daily routine?"),
    ("it turned out the {thing} was a copy and worth nothing", "Is the {thing} valuable?"),
    ("I promised my {rel} to bring {food} {when}", "What did I say I would bring along?"),
    ("the {topic} is really about getting my {rel} off my back", "What is the true reason for the {topic}?"),
    ("she wants the {room} back {when}, so we have to move our boxes", "By when do our things have to be out?"),
    ("my {rel} broke an arm at {hobby} and needs rides to work", "Who got hurt, and how?"),
    ("I left the umbrella at the {place} again", "What did I forget, and where?"),
    ("we only eat {food} on Sundays, it is a family thing", "What is our tradition at the end of the week?"),
)
# The same from the other side of a chat with an assistant: advice that may be asked for later.
_ADVISED: tuple[tuple[str, str], ...] = (
    ("For the {room} I would go with {colour}, since it hides scratches.", "What was suggested for the {room}?"),
    ("With the {plant}, less water and more light usually does it.", "What should I change about the {plant}?"),
    ("For the {topic}, start with the ending and work backwards.", "How was I told to begin the {topic}?"),
    ("A used {thing} is fine as long as the hinges are not rusty.", "What must I check before buying a {thing}?"),
    ("With {tool}, keep a backup before every larger change.", "What was the warning about {tool}?"),
    ("Most beginners in {hobby} grip far too hard, so relax your hands.", "What is the usual mistake in {hobby}?"),
    ("You can freeze {food}, but leave out the cream.", "How do I store {food}?"),
    ("Go to the {place} on a weekday, the side entrance is quieter.", "When is it best to visit the {place}?"),
)
_OPENINGS = (
    "",
    "",
    "",
    "by the way, ",
    "oh, and ",
    "also, ",
    "just so you know, ",
    "funny thing: ",
    "long story, but ",
)


# What people write between facts in a chat of short messages.
_REACTIONS = (
    *("Wow, that sounds great!", "Oh no, I am sorry to hear that.", "Haha, I can picture it.", "That is so true."),
    *("Good for you!", "I know the feeling.", "Really? I had no idea.", "Nice, I am happy for you.", "Same here!"),
    "That must have been hard, I hope the rest of the week is calmer for you.",
    "I know exactly what you mean, it has been the same for me for a long time now.",
    "You always find a way to make the best of it, and that is what I like about you.",
    "It is good to have people around who understand, even when they cannot do much.",
    "Thanks for telling me, it means a lot that we can talk about these things.",
    "I am really glad to hear that, you deserve it after all that work!",
    "Sometimes one just has to take it step by step and see where it leads.",
    "That sounds like a lot of fun, I would love to see some pictures of it!",
)
_COUNTER_QUESTIONS = (
    *("How did it go?", "What about you?", "Have you tried it before?", "Any plans for the weekend?", "Who else came?"),
    *("What do you think?", "How are things at home?", "Did you sleep at all?", "Would you do it again?"),
)


def make_mentions(seed: int, count: int, *, replied: float = 0.15, between_people: bool = False) -> list[Evidence]:
    """Return so many facts, no two with the same question; ``replied`` is the share that the other side says.

    Between people the other side talks about its own life, and not as an assistant.
    """
    random = Random(f"mentions {seed}")
    found: dict[str, Evidence] = {}
    while len(found) < count:
        by_other = random.random() < replied
        said, asked = random.choice(_ADVISED if by_other and not between_people else _MENTIONED)
        filled = {name: random.choice(pool) for name, pool in _POOLS.items()}
        question = asked.format_map(filled)
        if question in found:
            continue
        sentence = random.choice(_OPENINGS) + said.format_map(filled)
        sentence = f"{sentence[0].upper() if random.random() < 0.7 else sentence[0]}{sentence[1:]}".rstrip(".") + "."
        found[question] = Evidence(
            kind="advice" if by_other else "mention",
            sentence=sentence,
            needle=sentence,
            question=question,
            group=len(found),
            replied=by_other,
        )
    return list(found.values())


def make_chat(seed: int, *, turns: int, asked_share: float) -> tuple[list[tuple[str, str]], list[Evidence]]:
    """Return a chat of short messages between two people, and the facts in it that are asked for later.

    Half of the messages say something about the life of their author, the others only react or ask. Each such fact is
    asked for with the same chance, whoever said it.
    """
    random = Random(f"chat {seed}")
    facts = make_mentions(seed, 2 * turns, replied=0.5, between_people=True)
    typed, answered = ([fact for fact in facts if fact.replied is side] for side in (False, True))
    evidence: list[Evidence] = []
    talk: list[tuple[str, str]] = []
    for _ in range(turns):
        pair: list[str] = []
        for left in (typed, answered):
            parts = [random.choice(_REACTIONS)] if random.random() < 0.7 else []
            if left and random.random() < 0.5:
                fact = left.pop()
                parts.append(fact.sentence)
                evidence += [fact] if random.random() < asked_share else []
            if not parts or random.random() < 0.4:
                parts.append(random.choice(_COUNTER_QUESTIONS))
            pair.append(" ".join(parts))
        talk.append((pair[0], pair[1]))
    return talk, evidence
